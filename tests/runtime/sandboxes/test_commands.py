"""What a command's end says: output, size and digest, exit code, time, what outlived it."""

from __future__ import annotations

import hashlib
import threading
import time

from harnesslab.core.running.ports import Limits, Place
from harnesslab.runtime.sandboxes.bubblewrap import Bubblewrap, BubblewrapSandbox
from tests.runtime.sandboxes.conftest import Opener


def test_output_and_errors_come_as_they_came(sandbox: BubblewrapSandbox) -> None:
    found = sandbox.run("echo one; echo two >&2; echo three > /dev/stdout; exit 3", timeout=10)
    assert found.output == b"one\ntwo\nthree\n"
    assert (found.exit_code, found.error, found.timed_out, found.left_running) == (3, None, False, False)
    assert (found.size, found.digest) == (14, hashlib.sha256(found.output).hexdigest())


def test_files_stay_between_commands_and_variables_do_not(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("echo kept > file; export LOST=1; cd /tmp", timeout=10)
    found = sandbox.run("cat file; echo ${LOST-gone}; pwd; echo $GIVEN", timeout=10, environ={"GIVEN": "given"})
    assert found.output == b"kept\ngone\n/work\ngiven\n"


def test_a_program_with_arguments_needs_no_shell(sandbox: BubblewrapSandbox) -> None:
    assert sandbox.run(["printf", "%s|", "a b", "$HOME"], timeout=10).output == b"a b|$HOME|"


def test_a_missing_program_and_an_impossible_one_are_told_apart(sandbox: BubblewrapSandbox) -> None:
    assert sandbox.run(["no-such-program"], timeout=10).exit_code == 127
    assert sandbox.run(["printf", "a\0b"], timeout=10).exit_code == 126
    assert sandbox.run(["printf", "\ud800"], timeout=10).exit_code == 126
    assert sandbox.run("true " + "x" * 200_000, timeout=10).exit_code == 126


def test_a_signal_is_said_as_a_shell_says_it(sandbox: BubblewrapSandbox) -> None:
    assert sandbox.run("kill -TERM $$", timeout=10).exit_code == 128 + 15


def test_long_output_is_cut_with_a_marker_and_measured_whole(opened: Opener) -> None:
    sandbox = opened(Place(limits=Limits(output=1000)))
    found = sandbox.run("head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end", timeout=30)
    whole = b"x" * 40_000_000 + b"\nend\n"
    assert (found.size, found.digest) == (len(whole), hashlib.sha256(whole).hexdigest())
    head, marker, tail = found.output.partition(b"\n[... 39999005 bytes left out ...]\n")
    assert marker
    assert (head, tail) == (b"x" * 500, whole[-500:])


def test_a_timeout_keeps_the_output_and_ends_the_whole_group(sandbox: BubblewrapSandbox) -> None:
    found = sandbox.run("echo before; sleep 100 & sleep 100; echo after", timeout=0.5)
    assert found.output == b"before\n"
    assert found.timed_out
    assert found.exit_code is None
    assert found.error == "It was ended after 0.5 seconds."
    assert _processes(sandbox) == 0


def test_a_timeout_ends_daemons_of_sessions_of_their_own(sandbox: BubblewrapSandbox) -> None:
    found = sandbox.run("setsid -f sh -c 'trap \"\" TERM HUP INT; sleep 100'; echo out; sleep 100", timeout=0.5)
    assert found.timed_out
    assert found.output == b"out\n"
    assert _processes(sandbox) == 0


def test_what_outlives_a_command_is_ended_and_reported(sandbox: BubblewrapSandbox) -> None:
    began = time.monotonic()
    found = sandbox.run("setsid -f sleep 100; sleep 100 & echo done", timeout=30)
    assert found.output == b"done\n"
    assert found.left_running
    assert (found.exit_code, found.error) == (0, None)
    assert time.monotonic() - began < 20
    assert _processes(sandbox) == 0


def test_a_process_that_ends_at_once_is_not_called_left_running(sandbox: BubblewrapSandbox) -> None:
    assert not sandbox.run("exec > >(cat); echo through", timeout=10).left_running


def test_stopping_is_asked_about_and_obeyed(sandbox: BubblewrapSandbox) -> None:
    asked = []

    def stopped() -> bool:
        asked.append(time.monotonic())
        return len(asked) == 2

    found = sandbox.run("echo begun; sleep 100", timeout=60, stopped=stopped)
    assert found.error == "The command was stopped."
    assert not found.timed_out
    assert found.output == b"begun\n"
    assert asked[1] - asked[0] >= 0.45


def test_commands_of_two_threads_wait_for_each_other(sandbox: BubblewrapSandbox) -> None:
    sandbox.run("echo 0 > n", timeout=10)
    more = "read n < n; sleep 0.05; echo $((n + 1)) > n"
    threads = [threading.Thread(target=sandbox.run, args=(more,), kwargs={"timeout": 10}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sandbox.run("cat n", timeout=10).output == b"4\n"


def test_two_sandboxes_share_nothing(opened: Opener) -> None:
    first, second = opened(), opened()
    first.run("echo x > /work/a; echo x > /tmp/b; echo x > /dev/shm/c", timeout=10)
    assert second.run("ls /work /tmp/b /dev/shm/c; ls -A /work | wc -l", timeout=10).output.endswith(b"\n0\n")


def test_the_processor_limit_ends_a_command(opened: Opener) -> None:
    found = opened(Place(limits=Limits(cpu=1))).run(["sh", "-c", "while :; do :; done"], timeout=30)
    assert found.error == "The command used more than 1 seconds of processor time."
    assert found.exit_code is None


def test_conditions_name_what_a_manifest_asks(sandbox: BubblewrapSandbox) -> None:
    from harnesslab.core.conditions.manifest import Known, Manifest

    found = sandbox.conditions()
    manifest = Manifest.from_conditions(found, unknown="not asked")
    assert manifest.value("environment.network") == "none"
    assert isinstance(found["environment.pins"], Known)
    assert set(found) >= {"environment.image", "environment.platform", "hardware.cpu"}


def test_a_closed_sandbox_says_so(sandbox: BubblewrapSandbox) -> None:
    sandbox.close()
    sandbox.close()
    assert sandbox.run("true", timeout=1).error == "The sandbox is closed."


def test_this_machine_can_make_sandboxes() -> None:
    assert Bubblewrap().unavailable() == ""


def _processes(sandbox: BubblewrapSandbox) -> int:
    code = "import os; print(len([name for name in os.listdir('/proc') if name.isdigit()]))"
    return int(sandbox.run(["python3", "-c", code], timeout=10).output) - 3  # init, server and itself
