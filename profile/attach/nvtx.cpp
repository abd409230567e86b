// What NVTX calls in a process that is named: ranges of threads, in all domains. Marks, start and end across threads
// and resources are left as they are without a tool.
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <cwchar>
#include <string>

#include "profile/attach/ranges.h"
#include "profile/attach/record_file.h"
#include "profile/attach/settings.h"

namespace kbench::attach {
namespace {

/// A string that a program registered in a domain.
struct Registered {
    std::string text;
};

std::string narrow(const wchar_t* wide) {
    std::string text;
    for (; wide != nullptr && *wide != L'\0'; ++wide) text += *wide < 0x80 ? static_cast<char>(*wide) : '?';
    return text;
}

std::string text_of(const nvtxEventAttributes_t* event) {
    if (event == nullptr) return "";
    switch (event->messageType) {
        case NVTX_MESSAGE_TYPE_ASCII: return event->message.ascii != nullptr ? event->message.ascii : "";
        case NVTX_MESSAGE_TYPE_UNICODE: return narrow(event->message.unicode);
        case NVTX_MESSAGE_TYPE_REGISTERED:
            return event->message.registered != nullptr
                       ? reinterpret_cast<const Registered*>(event->message.registered)->text
                       : "";
        default: return "";
    }
}

int NVTX_API push_event(const nvtxEventAttributes_t* event) { return push_range(text_of(event), nullptr); }
int NVTX_API push_ascii(const char* text) { return push_range(text != nullptr ? text : "", nullptr); }
int NVTX_API push_wide(const wchar_t* text) { return push_range(narrow(text), nullptr); }
int NVTX_API pop() { return pop_range(nullptr); }
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
    return push_range(text_of(event), domain);
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) { return pop_range(domain); }

// Handles live as long as the process: a program may use them in its destructors.
nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
    return reinterpret_cast<nvtxDomainHandle_t>(new Registered{name != nullptr ? name : ""});
}
nvtxDomainHandle_t NVTX_API create_domain_wide(const wchar_t* name) {
    return reinterpret_cast<nvtxDomainHandle_t>(new Registered{narrow(name)});
}
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
    return reinterpret_cast<nvtxStringHandle_t>(new Registered{text != nullptr ? text : ""});
}
nvtxStringHandle_t NVTX_API register_wide(nvtxDomainHandle_t, const wchar_t* text) {
    return reinterpret_cast<nvtxStringHandle_t>(new Registered{narrow(text)});
}

/// A module's functions, to be replaced by their numbers.
struct Functions {
    NvtxFunctionTable table = nullptr;
    unsigned count = 0;

    template <class Function>
    void set(int number, Function* function) const {
        if (static_cast<unsigned>(number) < count && table[number] != nullptr)
            *table[number] = reinterpret_cast<NvtxFunctionPointer>(function);
    }
};

}  // namespace
}  // namespace kbench::attach

/// NVTX calls it when the program uses NVTX for the first time; 1: it is served.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    using namespace kbench::attach;
    if (!settings() || settings()->purpose != Purpose::names) return 0;
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable == nullptr) return 0;
    Functions core, core2;
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core.table, &core.count) != 0) {
        core.set(NVTX_CBID_CORE_RangePushEx, &push_event);
        core.set(NVTX_CBID_CORE_RangePushA, &push_ascii);
        core.set(NVTX_CBID_CORE_RangePushW, &push_wide);
        core.set(NVTX_CBID_CORE_RangePop, &pop);
    }
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2.table, &core2.count) != 0) {
        core2.set(NVTX_CBID_CORE2_DomainRangePushEx, &domain_push);
        core2.set(NVTX_CBID_CORE2_DomainRangePop, &domain_pop);
        core2.set(NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
        core2.set(NVTX_CBID_CORE2_DomainRegisterStringW, &register_wide);
        core2.set(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
        core2.set(NVTX_CBID_CORE2_DomainCreateW, &create_domain_wide);
    }
    std::atexit(flush_lines);  // a process that uses no GPU has no other end
    return 1;
}
