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
    "${@:2}" >>"$log" 2>&1
    running=
}
running=
scratch=

on_exit() {
    [[ -z $scratch ]] || rm -rf "$scratch"
    [[ -n $running ]] || return 0
    tail -n 25 "$log" >&2
    die 1 "$running failed; all that it printed is in $log"
}
trap on_exit EXIT

has_nvidia_driver() {
    [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl || -e /usr/lib/wsl/lib/libcuda.so.1 ]] ||
        command -v nvidia-smi >/dev/null || PATH=$PATH:/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'
}
