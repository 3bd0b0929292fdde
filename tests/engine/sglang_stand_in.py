"""A stand-in for SGLang's offline `Engine`: its constructor, `async_generate` and `shutdown`, with answers by a script.

`test_sglang_real.py` holds the signature against the installed SGLang's.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

Answer = dict[str, Any]


class TooBusyError(Exception):
    """As `fastapi.HTTPException`, which SGLang raises where it gives a request up."""

    def __init__(self, status_code: int, detail: str) -> None:
        super().__init__(detail)
        self.status_code, self.detail = status_code, detail


def answer(text: str = "yes", reason: str = "stop", retractions: int = 0) -> Answer:
    """An answer in SGLang's form."""
    told = {
        "id": "x", "finish_reason": {"type": reason}, "prompt_tokens": 1, "completion_tokens": len(text.split()),
        "num_retractions": retractions, "e2e_latency": 0.5,
    }  # fmt: skip
    return {"text": text, "output_ids": [1], "meta_info": told}


class Engine:
    """See the module. Scripts are set on the class: first token id of a prompt -> answer, exception, or "die"."""

    script: dict[int, Any] = {}  # noqa: RUF012
    seconds: dict[int, float] = {}  # noqa: RUF012
    made: list[Engine] = []  # noqa: RUF012
    start_error: BaseException | None = None

    def __init__(self, **kwargs: Any) -> None:
        if self.start_error is not None:
            raise self.start_error
        self.arguments, self.asked, self.stopped = kwargs, [], 0
        signal.signal(signal.SIGQUIT, kwargs["custom_sigquit_handler"])
        self.tokenizer_manager = SimpleNamespace(mm_processor=object(), last_receive_tstamp=0.0)
        infos = [{"max_total_num_tokens": 1000, "max_req_input_len": 900}]
        self._scheduler_init_result = SimpleNamespace(scheduler_infos=infos)
        self.made.append(self)

    async def async_generate(
        self,
        prompt: Any = None,
        sampling_params: Any = None,
        input_ids: Any = None,
        image_data: Any = None,
        audio_data: Any = None,
        video_data: Any = None,
        mm_hashes: Any = None,
        mm_content_hashes: Any = None,
        return_logprob: Any = False,
        logprob_start_len: Any = None,
        top_logprobs_num: Any = None,
        token_ids_logprob: Any = None,
        lora_path: Any = None,
        custom_logit_processor: Any = None,
        require_reasoning: bool = False,
        return_hidden_states: Any = False,
        return_routed_experts: bool = False,
        routed_experts_start_len: int = 0,
        stream: bool = False,
        bootstrap_host: Any = None,
        bootstrap_port: Any = None,
        bootstrap_room: Any = None,
        routed_dp_rank: Any = None,
        disagg_prefill_dp_rank: Any = None,
        kv_hints: Any = None,
        data_parallel_rank: Any = None,
        external_trace_header: Any = None,
        rid: Any = None,
        session_params: Any = None,
        priority: Any = None,
        session_id: Any = None,
        *,
        cache_salt: Any = None,
    ) -> Answer:
        """One answer."""
        first = input_ids[0]
        self.asked.append({"ids": input_ids, "params": sampling_params, "image": image_data, "video": video_data})
        await asyncio.sleep(self.seconds.get(first, 0))
        found = self.script.get(first, answer())
        if found == "die":
            os.kill(os.getpid(), signal.SIGQUIT)  # what SGLang's scheduler does to its parent
            await asyncio.sleep(60)
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, dict)
        return found

    def shutdown(self) -> None:
        """End."""
        self.stopped += 1


def put_in_place() -> None:
    """Let `import sglang` find the stand-in."""
    module = ModuleType("sglang")
    module.Engine = Engine  # type: ignore[attr-defined]
    sys.modules["sglang"] = module
