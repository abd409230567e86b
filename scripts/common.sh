# What ./kbench and the scripts share: where the checkout is, messages, logged phases, what this machine has. Sourced.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
log=$root/build/setup.log
cuda=${KBENCH_CUDA:-AUTO}

# Always on stderr: stdout belongs to the program that is being set up.
say() { printf 'kbench: %s\n' "$*" >&2; }

# die EXIT_CODE MESSAGE
die() {
    say "${*:2}"
    exit "$1"
}

case $cuda in
    AUTO | ON | OFF) ;;
    *) die 2 "KBENCH_CUDA is '$cuda'; it must be AUTO, ON or OFF" ;;
esac

# What is installed and built goes into the checkout.
require_writable() { [[ -w $root ]] || die 3 "$root cannot be written, where kbench is built: use a copy of it that can"; }

# phase TITLE COMMAND...: one line for the reader, the command's output for the log. A command that fails ends the script
# through `set -e` (which `if` and `||` around it would switch off) and on_exit, which shows the log's tail.
phase() {
    say "$1"
    mkdir -p "$root/build"
    printf '== %s: %s\n' "$1" "${*:2}" >>"$log"
    running=$1
    stop_on_signals
    set -m # a process group of its own, which can be ended as a whole
    {
        # This shell holds the launcher's lock (fd 9) until the command has ended, even where the launcher was killed. The
        # command must not: a server that it starts, such as sccache's, would keep the lock for ever.
        trap 'exit 143' TERM
        "${@:2}" 9>&-
        exit
    } </dev/null >>"$log" 2>&1 &
    set +m
    wait "$!"
    trap - HUP INT TERM
    running=
}
running=

# A signal that asks this shell to end ends what it started, as a whole.
stop_on_signals() {
    local signal
    for signal in HUP INT TERM; do
        # shellcheck disable=SC2064 # now, not when the signal comes
        trap "stop $signal" "$signal"
    done
}

# stop SIGNAL: waits for the end of what it ends, so that the lock is not given up before. A second signal does not wait.
stop() {
    local job
    trap - HUP INT TERM
    [[ -z $running ]] || say "stopped by SIG$1 while $running"
    running=
    for job in $(jobs -pr); do
        kill -TERM -- "-$job" || kill -TERM "$job" || true
    done 2>/dev/null
    wait
    kill -s "$1" "$$"
}

on_exit() {
    local jobs
    mapfile -t jobs < <(jobs -pr)
    ((${#jobs[@]} == 0)) || kill "${jobs[@]}" 2>/dev/null || true
    [[ -n $running ]] || return 0
    tail -n 25 "$log" >&2
    die 1 "$running failed; all that it printed is in $log"
}
trap on_exit EXIT

has_nvidia_driver() {
    [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl || -e /usr/lib/wsl/lib/libcuda.so.1 ]] ||
        command -v nvidia-smi >/dev/null || PATH=$PATH:/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'
}

# The names of the GPUs that are there. Read from files: nvidia-smi may take seconds.
kinds_of_gpus() { sed -n 's/^Model:[[:space:]]*//p' /proc/driver/nvidia/gpus/*/information 2>/dev/null | sort -u; }

# gpus: a line "name, compute capability" for each kind of GPU that is there; none where the driver cannot be asked.
gpus() { nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | grep -E ', [0-9]+\.[0-9]+$' | sort -u || true; }

# version_at_least VERSION MINIMUM
version_at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }
