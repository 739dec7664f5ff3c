#!/bin/bash
# Runs the program on a driver that crashes, hangs, loses the device, or lists broken devices. A layer of test/faults acts as that driver.
# Prints failures; the last line counts.
set -u
. "$(dirname "$0")/check.sh"
make -s -j2 build/test/rlxvk || exit 1
gcc -shared -fPIC -O1 -std=gnu11 -Wall -Wextra -Werror -fvisibility=hidden -o "$work/layer.so" test/faults/layer.c || exit 1
cat >"$work/layer.json" <<END
{"file_format_version": "1.1.0",
 "layer": {"name": "VK_LAYER_RLXVK_faults", "type": "GLOBAL", "library_path": "$work/layer.so", "api_version": "1.3.0",
           "implementation_version": "1", "description": "a bad driver",
           "device_extensions": [
              {"name": "VK_EXT_device_fault", "spec_version": "1", "entrypoints": ["vkGetDeviceFaultInfoEXT"]},
              {"name": "VK_AMD_buffer_marker", "spec_version": "1", "entrypoints": ["vkCmdWriteBufferMarkerAMD"]},
              {"name": "VK_NV_device_diagnostic_checkpoints", "spec_version": "1",
               "entrypoints": ["vkCmdSetCheckpointNV", "vkGetQueueCheckpointDataNV"]}]}}
END
# Each process first probes the device, by three submissions.
export NODEVICE_SELECT=1 # Mesa's own layer would change the order of devices
export VK_LAYER_PATH=$work VK_INSTANCE_LAYERS=VK_LAYER_RLXVK_faults RLXVK_TEST_FAULTS_COUNT=$work/count
printed=$work/printed errors=$work/errors

# Runs the program with faults (the first argument) and keeps what it prints. Succeeds if the exit status is that of the second argument.
rlxvk() {
    local faults=$1 wanted=$2
    shift 2
    rm -f "$work/count"
    RLXVK_TEST_FAULTS=$faults timeout 100 build/test/rlxvk "$@" >"$printed" 2>"$errors"
    (($? == wanted)) || { cat "$printed" "$errors"; return 1; }
}
says() { grep -qF -- "$1" "$printed" "$errors" || { cat "$printed" "$errors"; return 1; }; }
says_times() { test "$(cat "$printed" "$errors" | grep -cF -- "$2")" = "$1" || { cat "$printed" "$errors"; return 1; }; }

# ---- Crashes, hangs and losses ----

cases="--op softmax --sparse=8"
check "no fault" rlxvk "" 0 conform $cases --jobs 1
check "... and all pass" says "26 passed, 0 failed"
check "a crash, a hang and a loss fail the run" rlxvk crash@9,hang@20,lost@34 1 conform $cases --jobs 1 --timeout 6
check "... and their three cases" says "23 passed, 3 failed"
check "... which are named" says_times 3 "FAILED softmax case "
check "... a crash" says "the process that ran it ended by signal 6 (Aborted)"
check "... a hang" says "the process that ran it was killed, because it did not end within 6 s"
check "... a loss" says "E_DEVICE_LOST: vkQueueSubmit: VK_ERROR_DEVICE_LOST"
check "... with the kernels that were submitted last" grep -qE "submitted last \([0-9]+ dispatches\): softmax" "$printed"
check "two processes" rlxvk crash@10,crash@24 1 conform $cases --jobs 2
check "... go on after two crashes" says "24 passed, 2 failed"
check "the case that crashed" rlxvk crash@4 1 conform --op softmax --case 48 --jobs 1
check "... is the one that is named" says "FAILED softmax case 48:"
check "a loss in the program's own process" rlxvk lost@9 1 conform $cases --jobs 0
check "... fails one case" says "25 passed, 1 failed"
RLXVK_TEST_FAULT_TEXT="page fault" check "a driver that tells of a fault" rlxvk lost@9 1 conform $cases --jobs 1
check "... is quoted" says "; the driver says: 'page fault', invalid write at 0xabc000"
# Case 88 has two dispatches. The probe makes three submissions, so the sixth is its second run.
twice="conform --op softmax --case 88 --jobs 1"
RLXVK_TEST_MARKS=nv check "a driver that keeps marks" rlxvk lost@6 1 $twice
check "... says where the device was" says "; the device had begun dispatch 2 (softmax_finish of softmax (node 1)), and ended all before dispatch 1 (softmax_partial of"
RLXVK_TEST_MARKS=amd check "one that writes marks to memory" rlxvk lost@6 1 $twice
check "... says where the device was" says "; the device had begun dispatch 2 (softmax_finish of softmax (node 1)), and ended all before dispatch 2 (softmax_finish of"
RLXVK_TEST_MARKS=amd check "marks" rlxvk "" 0 $twice
check "a driver that compiles for minutes in a submission" rlxvk late@9 0 conform $cases --jobs 1
check "... passes" says "26 passed, 0 failed"
check "... unless a case may not take so long" rlxvk late@9 1 conform $cases --jobs 1 --timeout 100
check "... which is said" says "not done after 100.000 s"
check "the report in JSON" rlxvk crash@9 1 conform $cases --jobs 1 --json
check "... has the crash" grep -q '"message": "the process that ran it ended by signal 6' "$printed"

# ---- Memory that seems free but cannot be had ----

write="generate test/data/docs-5m-q8_0.gguf -p The --greedy -n 8"
words() { grep -v "^\[" "$printed"; }
check "a model" rlxvk "" 0 $write
text=$(words)
check "no memory for it" rlxvk memory@1 1 $write
check "... is an error with what is free" grep -qE "E_OUT_OF_DEVICE_MEMORY: .*: device memory: a block needs [0-9]+ bytes; [0-9]+ bytes are free of" "$errors"
check "... unless weights may lie on the host" rlxvk memory@1 0 $write --device-memory 1G
check "... where some then do" grep -qE ", [0-9.]*[1-9][0-9.]* MiB of weights in host memory" "$printed"
check "... and the text is the same" test "$(words)" = "$text"

# ---- Going on after the machine died ----

results=$work/results
resume="conform $cases --jobs 1 --resume $results"
begun() { grep -c "^begin" "$results"; }
# Kills the program, and so its processes, when one hangs.
die() {
    rm -f "$work/count"
    RLXVK_TEST_FAULTS=crash@9,hang@31 build/test/rlxvk $resume >"$printed" 2>"$errors" &
    local i
    for ((i = 0; i < 600; i++)); do
        [[ -s $work/count ]] && (($(od -An -tu4 "$work/count") >= 31)) && break
        sleep 0.1
    done
    kill -KILL $!
    wait $! 2>/dev/null
    for ((i = 0; i < 100; i++)); do
        flock -n "$results" true && return
        sleep 0.1
    done
    return 1
}
check "a machine that dies" die 2>/dev/null
before=$(grep -c "^end" "$results")
check "some cases had ended, one was running" test "$before" -ge 5 -a "$(begun)" = $((before + 1))
hung=$(grep "^begin" "$results" | tail -n 1 | cut -d ' ' -f 3-)
cp "$results" "$work/died"
printf 'end 1 pas' >>"$results" # torn
check "the same command goes on" rlxvk "" 1 $resume
check "... behind the cases that had ended" says "$before of 26 cases are in $results"
check "... and names the one that was running" says "$hung was running when the last run ended; it runs at the end"
check "... which passes" says "25 passed, 1 failed"
check "... after all others" test "$(grep "^begin" "$results" | tail -n 1 | cut -d ' ' -f 3-)" = "$hung"
check "each other case was begun once" test "$(begun)" = 27
check "a complete file" rlxvk crash@4 1 $resume
check "... runs nothing" test "$(begun)" = 27
check "... and reports the same" says "25 passed, 1 failed"
cp "$work/died" "$results"
tail -n 1 "$work/died" >>"$results"
check "a case that was running twice" rlxvk "" 1 $resume
check "... has failed" says "FAILED $hung:"
check "... and says why" says "was running when the last run ended, and when one before it did"
check "... and is not begun again" test "$(begun)" = 27
head -c 100 "$work/died" >"$results"
check "a torn header" rlxvk "" 0 $resume
check "... begins anew" test "$(begun)" = 26
check "another seed" rlxvk "" 1 $resume --seed 2
check "... is refused" says "it has results of another run, 'run rlxvk conform --seed 1 "
check "another option" rlxvk "" 1 $resume --canary
check "... is refused" says "instead of 'run rlxvk conform --canary "
RLXVK_NO_FUSION=1 check "another switch" rlxvk "" 1 $resume
check "... is refused" says "RLXVK_NO_FUSION=1'"
RLXVK_TEST_DEVICES="Other|2|a1||" check "another device" rlxvk "" 1 $resume
check "... is refused" says "instead of 'device Other, UUID a1"
cp Makefile "$work/other"
check "another file" rlxvk "" 1 conform $cases --resume "$work/other"
check "... is refused" says "this is no file of results of rlxvk conform"
check "... and stays" cmp Makefile "$work/other"
check "a folder that is not there" rlxvk "" 1 conform $cases --resume "$work/nosuch/file"
check "... is named" says "--resume $work/nosuch/file: No such file or directory"

# ---- Devices ----

export RLXVK_TEST_DEVICES="Twin|2|a1|0000:65:00.0|;Twin|2|a2|0000:b3:00.0|;Unmade|2|a3||create;Untold|1|a4||properties;Soft|4|a5||"
check "broken drivers do not stop the listing" rlxvk "" 0 info
check "... of all devices" test "$(grep -cE '^[0-9]  ' "$printed")" = 5
check "... with their addresses" says "UUID a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2, PCI 0000:b3:00.0"
check "... and why one cannot be opened" says "cannot be opened: device 'Unmade': vkCreateDevice: VK_ERROR_INITIALIZATION_FAILED"
check "... or used" says "cannot be used: vkEnumerateDeviceExtensionProperties: VK_ERROR_INITIALIZATION_FAILED"
run="conform --op relu --case 1 --jobs 0"
for name in 1 b3:00.0 0000:B3:00.0 a2a2a2a2-a2a2-a2a2-a2a2-a2a2a2a2a2a2 soft; do
    check "--device $name" rlxvk "" 0 $run --device $name
    RLXVK_DEVICE=$name check "RLXVK_DEVICE=$name" rlxvk "" 0 $run
done
check "... is used" says "Soft (llvmpipe"
check "a name of two devices" rlxvk "" 1 $run --device twin
check "... is refused with both" says "'twin' names 2 devices: 0 'Twin' (UUID a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1, PCI 0000:65:00.0), 1 'Twin' (UUID a2"
check "a broken device" rlxvk "" 1 $run --device untold
check "... is refused with the reason" says "3 'Untold' (not usable: vkEnumerateDeviceExtensionProperties: VK_ERROR_INITIALIZATION_FAILED"
check "one that cannot be opened" rlxvk "" 1 $run --device 2
check "... is refused with the reason" says "device 'Unmade': vkCreateDevice: VK_ERROR_INITIALIZATION_FAILED"
export RLXVK_TEST_DEVICES="Soft|4|a5||;Unmade|2|a3||create;Virtual|3|a6||"
check "the next best is used if the best cannot be opened" rlxvk "" 0 $run
check "... which is not software" says "Virtual (llvmpipe"
check "... with a warning" says "device 1 'Unmade' is left out: vkCreateDevice: VK_ERROR_INITIALIZATION_FAILED"
export RLXVK_TEST_DEVICES="Soft|4|a5||;Unlisted|2|a3||enumerate"
check "a driver that fails the listing" rlxvk "" 1 $run
check "... is no crash" says "vkEnumeratePhysicalDevices: VK_ERROR_INITIALIZATION_FAILED"
check "... and can be left out" says "a driver fails, which VK_LOADER_DRIVERS_DISABLE or VK_DRIVER_FILES can leave out"
finish
