"""MVBench: `OpenGVLab/MVBench`, twenty JSON files named after their tasks; --src is one of them or their folder.

Videos stand in a folder a task under the media root. Records of five tasks have bounds in seconds into whole
videos, which become the clip window; --precut is for mirrors whose videos were cut to them. Episodic reasoning has
folders of JPEG files at 3 a second, counted from 1.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

_NULL = type(None)
CHARADES, CLEVRER, PERCEPTION = "star/Charades_v1_480", "clevrer/video_validation", "perception/videos"
FRAMES = "tvqa/frames_fps3_hq"
FOLDERS = {
    "action_sequence": CHARADES,
    "action_prediction": CHARADES,
    "action_antonym": "ssv2_video",
    "fine_grained_action": "Moments_in_Time_Raw/videos",
    "unexpected_action": "FunQA_test/test",
    "object_existence": CLEVRER,
    "object_interaction": CHARADES,
    "object_shuffle": PERCEPTION,
    "moving_direction": CLEVRER,
    "action_localization": "sta/sta_video",
    "scene_transition": "scene_qa/video",
    "action_count": PERCEPTION,
    "moving_count": CLEVRER,
    "moving_attribute": CLEVRER,
    "state_change": PERCEPTION,
    "fine_grained_pose": "nturgbd",
    "character_order": PERCEPTION,
    "egocentric_navigation": "vlnqa",
    "episodic_reasoning": FRAMES,
    "counterfactual_inference": CLEVRER,
}
"""Task -> folder, as in OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb."""
PRECUT = {
    CHARADES: "star/Charades_segment",
    "sta/sta_video": "sta/sta_video_segment",
    FRAMES: "tvqa/video_fps3_hq_segment",
    "nturgbd": "nturgbd_convert",
    "ssv2_video": "ssv2_video_mp4",
}
"""Folders of the mirror that lmms-eval @75571cf reads, lmms_eval/tasks/mvbench/utils.py."""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the task and the record's number."""
    task = record["task"]
    folder = FOLDERS.get(task)
    path = f"{folder}/{record['video']}" if folder else record["video"]
    media = {"frames": path, "frames_fps": 3, "frames_start_index": 1} if folder == FRAMES else {"video": path}
    bounds = {"clip_start": record.get("start") or 0, "clip_end": record["end"]} if record.get("end") else {}
    return {
        "id": f"{task}-{number}",
        **media,
        **bounds,
        "question_type": task,
        "question": record["question"],
        "options": record["candidates"],
        "answer": record["answer"],
        "answer_type": "choice_text",
        "categories": {"task": task},
    }


IMPORTER = Importer(
    name="mvbench",
    profile="mvbench.lmms_main",
    columns={
        "video": (str,),
        "question": (str,),
        "candidates": (list,),
        "answer": (str,),
        "start": (int, float, _NULL),
        "end": (int, float, _NULL),
        "task": (str,),
    },
    row=to_row,
    prompt=prompts.mvbench(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/mvbench/utils.py, mvbench_doc_to_text",
    max_tokens=16,
    from_file_name="task",
    precut=PRECUT,
)
