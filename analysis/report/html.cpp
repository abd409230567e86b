// The page of a result as report_data() gives it.
#include "analysis/report/html.h"

#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"

namespace kbench {

std::string write_html(const ExplainedResult& explained) {
    return html_page(report_title(explained.result()), report_data(explained));
}

}  // namespace kbench
