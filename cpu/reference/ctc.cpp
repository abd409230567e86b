// Reference of connectionist temporal classification.
#include <algorithm>
#include <limits>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
    const double larger = std::max(a, b);
    return larger == never ? never : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

/// Roundings in computing one forward or backward variable, in units that do not grow with it: three exponentials and
/// a logarithm, by hardware instructions of 4 units each.
constexpr double units_of_a_sum = 16;

/// All alignments of sequence n. An alignment is a path through places 0 to 2 targets: the targets with a blank before,
/// after and between them.
class Alignments {
  public:
    Alignments(const Ctc& op, View logits, View lengths, View targets, View target_lengths, std::int64_t sequence)
        : op_(op), steps_(steps_of(static_cast<std::int64_t>(at(lengths, sequence)), op.frames_per_step, op.steps)) {
        const auto targets_here =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(at(target_lengths, sequence)), 0, op.target);
        for (std::int64_t i = 0; i < targets_here; ++i) {
            labels_.push_back(0);
            labels_.push_back(static_cast<std::int64_t>(targets(sequence, i)));
        }
        labels_.push_back(0);
        places_ = static_cast<std::int64_t>(labels_.size());
        read_logits(logits, sequence);
        find_alpha();
        if (steps_ == 0) total_ = places_ == 1 ? 0 : never;  // without steps there is one alignment, that of no target
    }

    /// The loss, with the error of a sum over the steps in log space. Each step rounds the variable, which ends up as
    /// large as the loss, and adds the logarithm of a probability with its error. A step's error counts with its
    /// place's share in the alignments; the shares of all places add up to at most one.
    Expected loss() const { return {-total_, 0, 1, total_ == never || steps_ == 0 ? 0 : error_of_total()}; }
    /// A row of the gradient before it is multiplied by the scale; zeros after the end. Call find_beta first.
    std::vector<Expected> gradient(std::int64_t step) const {
        std::vector<Expected> row(static_cast<std::size_t>(op_.labels), {0, 0, 0});
        if (step >= steps_ || total_ == never) return row;
        for (std::int64_t label = 0; label < op_.labels; ++label) {
            // As for cross-entropy: p has the errors of its own exponential and of the sum, and eight roundings; an
            // exponential may be lost below fp32's smallest number.
            constexpr double smallest = 0x1p-100;
            const double p = std::exp(log_p(step, label));
            const double units = 4 + 2 * (-log_p(step, label) + shared_[static_cast<std::size_t>(step)]) + 8;
            row[static_cast<std::size_t>(label)] = {p, (p > 0 ? p * units : 0.0) + smallest, 1};
        }
        for (std::int64_t place = 0; place < places_; ++place) {
            const double a = alpha(step, place), b = beta(step, place), share = std::exp(a + b - total_);
            if (!(share > 0)) continue;
            Expected& of = row[static_cast<std::size_t>(labels_[static_cast<std::size_t>(place)])];
            of.value -= share;
            // Errors of the exponent are relative errors of the share; those of all shares of a label may be equal.
            // Sums have up to one share per target, and four roundings.
            const double squares =
                squares_of(a, 0, step + 1) + squares_of(b, step + 1, steps_) + error_of_total() * error_of_total();
            of.carried += share * std::sqrt(squares);
            of.magnitude += share * (8 + std::sqrt(static_cast<double>(places_)));
        }
        return row;
    }
    /// Computes `beta` from the steps after a step, without the step itself.
    void find_beta() {
        beta_.assign(static_cast<std::size_t>(steps_ * places_), never);
        for (std::int64_t step = steps_ - 1; step >= 0; --step)
            for (std::int64_t place = 0; place < places_; ++place) {
                double sum = never;
                if (step == steps_ - 1) {
                    if (place >= places_ - 2) sum = 0;
                } else {
                    for (std::int64_t to = place; to <= std::min(place + 2, places_ - 1); ++to)
                        if (to < place + 2 || skips_to(to))
                            sum = log_sum(sum, beta(step + 1, to) + log_p_at(step + 1, to));
                }
                beta(step, place) = sum;
            }
    }

  private:
    double& alpha(std::int64_t step, std::int64_t place) {
        return alpha_[static_cast<std::size_t>(step * places_ + place)];
    }
    double alpha(std::int64_t step, std::int64_t place) const {
        return alpha_[static_cast<std::size_t>(step * places_ + place)];
    }
    double& beta(std::int64_t step, std::int64_t place) {
        return beta_[static_cast<std::size_t>(step * places_ + place)];
    }
    double beta(std::int64_t step, std::int64_t place) const {
        return beta_[static_cast<std::size_t>(step * places_ + place)];
    }
    double log_p(std::int64_t step, std::int64_t label) const {
        return log_p_[static_cast<std::size_t>(step * op_.labels + label)];
    }
    double log_p_at(std::int64_t step, std::int64_t place) const {
        return log_p(step, labels_[static_cast<std::size_t>(place)]);
    }
    /// Whether an alignment may skip the blank before a place: not between equal labels.
    bool skips_to(std::int64_t place) const {
        const auto i = static_cast<std::size_t>(place);
        return place >= 2 && labels_[i] != 0 && labels_[i] != labels_[i - 2];
    }

    void read_logits(View logits, std::int64_t sequence) {
        log_p_.resize(static_cast<std::size_t>(steps_ * op_.labels));
        squares_.push_back(0);
        for (std::int64_t step = 0; step < steps_; ++step) {
            double* row = log_p_.data() + step * op_.labels;
            read_row(logits, step * op_.batch + sequence, 0, op_.labels, row);
            const double largest = *std::max_element(row, row + op_.labels);
            double sum = 0, relative = 0;
            for (std::int64_t label = 0; label < op_.labels; ++label) {
                const double e = std::exp(row[label] - largest);
                sum += e;
                if (e > 0) relative += e * (4 + 2 * (std::abs(row[label]) + std::abs(largest)));
            }
            relative = relative / sum + std::sqrt(static_cast<double>(op_.labels));
            const double log_of_sum = largest + std::log(sum);
            for (std::int64_t label = 0; label < op_.labels; ++label) row[label] -= log_of_sum;
            // A logit is at most as large as its log-probability plus the row's logarithm.
            shared_.push_back(relative + 4 * (std::log(sum) + std::abs(largest) + std::abs(log_of_sum)));
            const double units = shared_.back() + units_of_a_sum;
            squares_.push_back(squares_.back() + units * units);
        }
    }
    void find_alpha() {
        alpha_.assign(static_cast<std::size_t>(steps_ * places_), never);
        for (std::int64_t step = 0; step < steps_; ++step)
            for (std::int64_t place = 0; place < places_; ++place) {
                double sum = never;
                if (step == 0) {
                    if (place < 2) sum = 0;
                } else {
                    for (std::int64_t from = std::max<std::int64_t>(place - 2, 0); from <= place; ++from)
                        if (from > place - 2 || skips_to(place)) sum = log_sum(sum, alpha(step - 1, from));
                }
                alpha(step, place) = sum + log_p_at(step, place);
            }
        if (steps_ > 0) total_ = alpha(steps_ - 1, places_ - 1);
        if (steps_ > 0 && places_ > 1) total_ = log_sum(total_, alpha(steps_ - 1, places_ - 2));
    }

    /// Sum of squares of the errors of a variable after steps [first, last). It is rounded twice per step on the way.
    /// It was no larger then: paths with a share w of it were larger by at most log(1/w). It is the sum of the
    /// log-probabilities on the way, with four roundings each.
    double squares_of(double variable, std::int64_t first, std::int64_t last) const {
        return squares_[static_cast<std::size_t>(last)] - squares_[static_cast<std::size_t>(first)] +
               (4 * static_cast<double>(last - first) + 16) * variable * variable;
    }
    double error_of_total() const { return std::sqrt(squares_of(total_, 0, steps_)); }

    const Ctc& op_;
    std::int64_t steps_, places_ = 0;
    std::vector<std::int64_t> labels_;          ///< label of each place
    std::vector<double> log_p_, alpha_, beta_;  ///< [steps, labels], [steps, places]
    std::vector<double> shared_, squares_;      ///< log-sum-exp errors in units; sums of squares before a step
    double total_ = never;
};

}  // namespace

std::vector<Expected> expected(const Ctc& op, Question q) {
    const bool asks_for_logits = q.asks_for_next();
    const View logits = q.next(), lengths = q.next(), targets = q.next(), target_lengths = q.next();
    const double scale = asks_for_logits ? at(q.next(), 0) / static_cast<double>(op.batch) : 0;
    // The elements by sequence, wherever their steps are.
    std::vector<std::vector<std::size_t>> of(static_cast<std::size_t>(op.batch));
    for (std::size_t i = 0; i < q.elements.size(); ++i) {
        const auto [row, column] = q.elements[i];
        of[static_cast<std::size_t>(asks_for_logits ? row % op.batch : column)].push_back(i);
    }
    std::vector<Expected> expected(q.elements.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t n = 0; n < op.batch; ++n) {
        const std::vector<std::size_t>& mine = of[static_cast<std::size_t>(n)];
        if (mine.empty()) continue;
        Alignments alignments(op, logits, lengths, targets, target_lengths, n);
        if (!asks_for_logits) {
            for (const std::size_t i : mine) expected[i] = alignments.loss();
            continue;
        }
        alignments.find_beta();
        std::vector<Expected> row;
        for (std::size_t j = 0; j < mine.size(); ++j) {
            const auto [at_row, column] = q.elements[mine[j]];
            if (j == 0 || at_row != q.elements[mine[j - 1]].row) row = alignments.gradient(at_row / op.batch);
            Expected e = row[static_cast<std::size_t>(column)];
            e.value *= scale;
            e.magnitude *= std::abs(scale);
            e.carried *= std::abs(scale);
            expected[mine[j]] = e;
        }
    }
    return expected;
}

/// A row of logits, one step of a sequence, shares its work. Few elements cost more each, because all steps before them
/// are computed, but never more than all elements do.
ElementCost cost(const Ctc& op) {
    return {30 * (2 * static_cast<double>(op.target) + 1) / static_cast<double>(op.labels) + 4, op.labels};
}

}  // namespace kbench::reference
