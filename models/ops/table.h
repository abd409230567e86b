// The table of op kinds: kbench's own and those that a program brought along.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kbench/op.h"

namespace kbench {

/// kbench's own kinds first, in the order of list.h.
std::span<const OpKind* const> op_kinds();

/// The kind called `name`; null where there is none.
const OpKind* find_op_kind(std::string_view name);

/// The kind called `name`. Throws UsageError that begins with `context` and lists the kinds.
const OpKind& require_op_kind(std::string_view name, std::string_view context = {});

/// The kind's place in the table.
std::size_t index_of(const OpKind& kind);

/// Adds a kind from outside kbench, before main or at its beginning. Throws std::invalid_argument where the name is
/// taken, or where no option could name it.
void add_op_kind(const OpKind& kind);

}  // namespace kbench
