// What result.json holds: its tables of fields are in result_fields.cpp. Reading, writing, the schema and
// docs/schema.md follow from them.
#pragma once

#include "analysis/result/json_fields.h"
#include "kbench/result.h"

namespace kbench::fields {

const Object& result_object();
const Object& ceiling_run_object();

}  // namespace kbench::fields
