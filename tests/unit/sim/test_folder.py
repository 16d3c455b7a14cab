"""Where a simulated cluster keeps the files of its machines."""

from __future__ import annotations

from interlace.sim import cluster


def test_sockets_of_a_thousand_machines_have_paths_that_the_kernel_takes_below_the_usual_folder() -> None:
    assert len("/tmp") <= cluster._LONGEST_FOLDER
