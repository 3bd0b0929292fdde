"""`vidpipe run --on ray[:ADDRESS]`: what the option asks for, refused where it cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from vidpipe.errors import RecipeError

if TYPE_CHECKING:
    from vidpipe.job.answer import Answered
    from vidpipe.job.display import Display
    from vidpipe.job.progress import RunProgress
    from vidpipe.recipe.load import LoadedRecipe
    from vidpipe.record.run_dir import RunDir


class OnRay:
    """The engines of one command on a Ray cluster.

    Args:
        place: The option's value.
        shard: That of `--shard`.
        loaded: The recipe; its `engine.data_parallel` is the number of engines.

    Raises:
        RecipeError: the option cannot be understood, or not together with `--shard`.
        CapabilityError: Ray is not installed.
    """

    def __init__(self, place: str, shard: str | None, loaded: LoadedRecipe) -> None:
        from vidpipe.cluster.ray_connect import address_of

        self._address = address_of(place)
        if shard is not None:
            raise RecipeError(
                f"--on {place} --shard {shard}: --shard is for hosts that share no disk, and on Ray all nodes share "
                "RUN_DIR. Leave out one of them."
            )
        self._engines = loaded.recipe.engine.data_parallel
        engine = loaded.recipe.engine.model_copy(update={"data_parallel": 1})
        self.loaded = replace(loaded, recipe=loaded.recipe.model_copy(update={"engine": engine}))
        """The recipe of each engine."""

    @contextmanager
    def connected(self, limit: int | None, display: Display) -> Iterator[Callable[[RunDir, RunProgress], Answered]]:
        """Inside, what `job.run` takes as `elsewhere`.

        Raises:
            RecipeError: there is no cluster.
        """
        from vidpipe.cluster.ray_connect import connected

        display.state("connecting to Ray")
        with connected(self._address, self._engines) as disconnect:
            from vidpipe.cluster.ray_run import answer_on_ray

            def answer(run_dir: RunDir, progress: RunProgress) -> Answered:
                try:
                    return answer_on_ray(self.loaded, self._engines, limit, progress, run_dir)
                finally:
                    disconnect()  # while what Ray prints of its own accord still goes to the run's log

            yield answer
