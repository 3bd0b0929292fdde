"""The words of the questions: several for each kind, the first one the plainest."""

from __future__ import annotations

from collections.abc import Mapping

PLURAL = {"cross": "crosses"}

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "colour": (
        "What colour is the {shape}?",
        "What is the color of the {shape}?",
        "Which colour does the {shape} have?",
    ),
    "shape": (
        "What shape is the {colour} object?",
        "What is the shape of the {colour} object?",
        "Which shape does the {colour} object have?",
    ),
    "count": (
        "How many objects are there?",
        "How many different objects are shown in the video?",
        "Count the objects in the video.",
    ),
    "object_counting": (
        "How many {one}(s) are in this video?",
        "How many {many} are there?",
        "Count the {many} in the video.",
    ),
    "direction": (
        "Which way does the {thing} move?",
        "In which direction does the {thing} go?",
        "Where is the {thing} moving?",
    ),
    "order": (
        "Which comes first, the {thing} or the {other}?",
        "Which appears earlier in the video: the {thing} or the {other}?",
        "Of the {thing} and the {other}, which is seen first?",
    ),
    "time": (
        "When does the {thing} appear?",
        "At how many seconds is the {thing} first seen?",
        "At what time does the {thing} come into the picture?",
    ),
    "last_time": (
        "When is the {thing} last seen?",
        "At how many seconds is the {thing} seen for the last time?",
        "What is the last time at which the {thing} is shown?",
    ),
    "what_at": (
        "What appears at {time} seconds?",
        "Which object is first seen at {time} seconds?",
        "What comes into the picture at {time} seconds?",
    ),
    "exists": (
        "Is there a {thing}?",
        "Does a {thing} appear in the video?",
        "Can you see a {thing} in this video?",
    ),
    "present_at": (
        "Is the {thing} there at {time} seconds?",
        "At {time} seconds, is the {thing} in the picture?",
        "Can the {thing} be seen at {time} seconds?",
    ),
    "size": (
        "Which is larger, the {thing} or the {other}?",
        "Which one is bigger: the {thing} or the {other}?",
        "Of the {thing} and the {other}, which has the larger size?",
    ),
    "event_time": (
        "When does the border light up?",
        "At how many seconds is the white border first seen?",
        "At what time does the frame around the picture turn white?",
    ),
}
