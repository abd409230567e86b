// Times scopes and iterations by the schedule. In an iteration one scope is measured, by a pair of events, between the
// events of the iteration itself; the next iteration measures the next scope. So nothing but two records is added to
// what runs. Scopes of captured graphs are nodes of the graph, which are all there in each launch: those are read in
// one iteration, behind which the program waits for the GPU, and the next one, which begins on an idle GPU, is not
// measured.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profile/driver.h"
#include "profile/embedded/recording.h"
#include "profile/schedule.h"

namespace kbench::embedded {

using Event = std::shared_ptr<CUevent_st>;

/// The profiler of one device. Calls are never concurrent. All throw std::runtime_error where a call of CUDA fails.
class DeviceProfiler {
  public:
    DeviceProfiler(const Schedule& schedule, const Driver& driver, CUcontext context, int id, std::string name);

    void begin(std::string_view label, CUstream stream);
    void end(std::string_view label, CUstream stream);
    void iteration(CUstream stream);
    /// Waits for what the GPU still works on, and measures nothing more.
    void finish();

    bool is_finished() const { return is_finished_; }
    bool has_iterations() const { return iteration_ >= 0; }
    bool is_complete() const;
    RecordedDevice recorded() const;
    int id() const { return recorded_.id; }
    void note(const std::string& text);

  private:
    static constexpr std::size_t not_scheduled = static_cast<std::size_t>(-1);

    struct Scope {
        RecordedScope recorded;
        std::size_t row = 0;  ///< the schedule's
        std::int64_t taken = 0, turns = 0;
        Event graph_begin, graph_end;
    };
    /// Begins and ends of a label on a stream within one iteration, or one capture.
    struct Occurrences {
        std::int64_t number = -1;  ///< the iteration's, or the capture's
        int begun = 0;
        std::vector<int> open;                 ///< the latest last
        std::vector<std::size_t> scopes = {};  ///< by occurrence

        /// Counts anew in another iteration or capture; which scopes they are stays known.
        void renew(std::int64_t now) {
            if (number == now) return;
            number = now;
            begun = 0;
            open.clear();
        }
    };
    struct Track {
        Occurrences in_stream, in_graph;
    };
    struct Key {
        CUstream stream;
        std::string label;
    };
    struct KeyView {
        CUstream stream;
        std::string_view label;
    };
    struct Hash {
        using is_transparent = void;
        template <class K>
        std::size_t operator()(const K& key) const {
            return std::hash<std::string_view>()(key.label) ^ (std::hash<const void*>()(key.stream) * 31);
        }
    };
    struct Equal {
        using is_transparent = void;
        template <class A, class B>
        bool operator()(const A& a, const B& b) const {
            return a.stream == b.stream && std::string_view(a.label) == std::string_view(b.label);
        }
    };
    /// An iteration whose events the GPU may not have reached yet.
    struct Pending {
        Event start, end;
        std::size_t scope = not_scheduled;
        Event scope_begin, scope_end;
    };
    enum class Capture { none, active, refused };

    Capture capture_of(CUstream stream, std::int64_t& id) const;
    Track& track(std::string_view label, CUstream stream);
    std::size_t scope_at(Occurrences& occurrences, int occurrence, std::string_view label, CUstream stream,
                         bool in_graph, std::int64_t index);
    std::string stream_name(CUstream stream);
    bool is_done(const Scope& scope) const;
    std::int64_t start_of(const Scope& scope) const { return schedule_.scopes[scope.row].start; }
    bool all_done() const;
    void choose();
    void close_iteration(Event end);
    void read_graphs(const Event& start, const Event& end);
    void drain(bool waits);
    void take(const Pending& pending);
    void add_sample(Scope& scope, double offset_ms, double measured_ms);
    double elapsed(const Event& from, const Event& to) const;

    Event make_event();
    void record(const Event& event, CUstream stream, bool in_graph = false) const;

    const Schedule& schedule_;
    const Driver& driver_;
    CUcontext context_;
    RecordedDevice recorded_;  ///< without its scopes
    std::vector<Scope> scopes_;
    std::unordered_map<Key, Track, Hash, Equal> tracks_;
    std::vector<CUstream> streams_;  ///< that have a number for a name
    std::set<std::string> noted_;
    std::shared_ptr<std::vector<CUevent>> unused_ = std::make_shared<std::vector<CUevent>>();

    std::int64_t iteration_ = -1, index_ = 0;
    std::int64_t capture_ = -1, capture_index_ = 0;
    bool is_finished_ = false;

    // The iteration that runs.
    Event start_, scope_begin_, scope_end_;
    std::size_t target_ = not_scheduled;
    bool reads_graphs_ = false, settles_ = false;
    std::int64_t graph_turns_ = 0;
    std::deque<Pending> pending_;
};

/// The profiler of a process: a device's calls go to that device's.
class Profiler {
  public:
    Profiler(Schedule schedule, std::unique_ptr<Driver> driver);

    void begin(std::string_view label, CUstream stream);
    void end(std::string_view label, CUstream stream);
    void iteration(CUstream stream);
    /// Ends all measurements. Errors of CUDA lose what is not read yet, and no more.
    void finish();

    /// Whether every device that began an iteration has done what the schedule asks.
    bool is_finished() const;
    Recording recording() const;
    const Schedule& schedule() const { return schedule_; }

  private:
    /// Nothing where the calling thread has no context.
    DeviceProfiler* device_of(CUstream stream);

    const Schedule schedule_;
    const std::unique_ptr<Driver> driver_;
    std::unordered_map<CUcontext, std::unique_ptr<DeviceProfiler>> devices_;  ///< null: a second context of a device
    std::unordered_map<CUstream, CUcontext> contexts_;
    std::vector<DeviceProfiler*> in_order_;
};

}  // namespace kbench::embedded
