"""The `--json` documents of import, score and compare."""

from __future__ import annotations

from typing import Any, Literal

from vidpipe.cli.document import Document


class ImportDocument(Document):
    """`vidpipe import --json`."""

    benchmark: str
    """Name of the importer."""
    subset: str | None
    """Published part that was taken; null: the whole file."""
    setting: str | None
    """Published setting that the recipe has; null: sampling is to be filled in."""
    source: str
    """The published file or folder as given."""
    source_sha256: str
    """Of its bytes in hexadecimal; of a folder, of its files' hashes and names."""
    source_rows: int
    """Records in it."""
    rows: int
    """Rows written."""
    question_types: dict[str, int]
    """Written rows by question type; empty where the benchmark has none."""
    missing_videos: list[str]
    """Videos that are not under the media root; their rows are written all the same."""
    missing_subtitles: list[str]
    """Subtitle files that --subtitles asked for and that are not there; their rows have none."""
    recipe: str
    """The recipe that was written; the manifest lies beside it."""
    profile: str
    """Scorer profile in the recipe."""


class ScoreLine(Document):
    """One line of a table; scores are percent."""

    name: str
    """`overall`, or a group, question type or value of a category."""
    score: float
    """Percent, from 0 to 100."""
    rows: int
    """Rows in it, each counted once: wrong, unreadable and failed ones too."""
    clips: int
    """Clips that these rows are about."""
    stderr: float | None
    """Standard error over clips; null with fewer than two."""
    interval_95: tuple[float, float] | None
    """95 % interval: score +- 1.96 standard errors, ended at 0 and 100."""
    unparsed: int
    """Replies in which the profile found no answer: wrong."""
    format_failures: float
    """Percent of the rows that are unparsed."""
    failed: int
    """Rows without a reply: wrong."""


class TableDocument(Document):
    """A run under one scorer profile."""

    profile: str
    """Name of the rules."""
    version: int
    """Version of the rules."""
    rules: str
    """Where the rules come from."""
    scale: Literal["percent"]
    """Of every score here."""
    unit: Literal["rows", "sets"]
    """What counts once: `rows` of every line here are these."""
    partial: bool
    """Rows or question types are missing: `overall` is no result of the benchmark."""
    missing_types: list[str]
    """Question types of the benchmark without a row."""
    unscored: int
    """Rows without an expected answer."""
    cut: int
    """Replies that the token limit cut."""
    cut_reasoning: int
    """Of these, replies that end inside their reasoning, before any answer."""
    incomplete_sets: int
    """Sets of questions with rows missing: no part of the score."""
    overall: ScoreLine
    """The headline, as the profile averages."""
    clips_for_one_point: int | None
    """Clips with which a paired comparison sees a difference of one point in four of five cases at the 5 % level,
    where scores on a clip correlate by a half; null with fewer than two clips."""
    bootstrap_95: tuple[float, float] | None
    """With --bootstrap: percentile interval of the headline over resampled clips."""
    groups: list[ScoreLine]
    """The parts whose plain mean is the headline; empty where that is the mean over rows."""
    types: list[ScoreLine]
    """Each question type."""
    breakdowns: dict[str, list[ScoreLine]]
    """Category -> plain mean over the rows of each value."""


class ScoreDocument(Document):
    """`vidpipe score --json`."""

    source: str
    """The run or file."""
    rows: int
    """Rows that it holds."""
    missing: int | None
    """Rows of the manifest without a record; null where the file does not tell."""
    strip_reasoning: bool
    """Whether tagged reasoning was taken out before scoring."""
    asked: dict[str, Any]
    """What else these numbers rest on: the run's model, sampling, pruning, generation, overrides, and hashes of its
    prompt and system text; empty where the file does not tell."""
    judge: str | None
    """File of a judge model's replies; null: none was given."""
    tables: list[TableDocument]
    """One for each profile; none where --submission found all labels hidden."""


class DifferenceDocument(Document):
    """B minus A over the rows that both runs have; percent points."""

    name: str
    """`overall`, or a group."""
    score_a: float
    """Percent."""
    score_b: float
    """Percent."""
    difference: float
    """score_b - score_a."""
    stderr: float | None
    """Of the difference, over clips."""
    interval_95: tuple[float, float] | None
    """Of the difference, ended at -100 and 100."""
    rows: int
    """Rows in it."""
    clips: int
    """Their clips."""
    wins: int
    """Rows on which B scores higher."""
    losses: int
    """Rows on which A scores higher."""
    mcnemar_p: float | None
    """p value of McNemar's exact test; null where a row scored between 0 and 1."""


class SpeedDocument(Document):
    """What a run's rows cost; null where its file does not tell."""

    seconds: dict[str, float | None]
    """Stage -> mean seconds of a row; rows run side by side."""
    tokens_in: float | None
    """Mean prompt tokens."""
    tokens_out: float | None
    """Mean answer tokens."""
    vision_asked: float | None
    """Mean vision tokens before pruning."""
    vision_kept: float | None
    """Mean vision tokens in the prompt."""
    elapsed_s: float | None
    """Seconds of the run's processes together, each from its engine's first start to its end."""
    rows_per_s: float | None
    """Rows a second of a process while its engine was up."""


class CompareDocument(Document):
    """`vidpipe compare --json`."""

    a: str
    """The first run."""
    b: str
    """The second run."""
    profile: str
    """Rules that scored both."""
    version: int
    """Version of the rules."""
    changed: list[str]
    """`key: A's value -> B's` for what the runs were asked differently; empty where a file does not tell."""
    matched: int
    """Rows that both have."""
    only_a: int
    """Rows that only A has; they take no part."""
    only_b: int
    """Rows that only B has; they take no part."""
    overall: DifferenceDocument
    """Of the headline."""
    clips_for_one_point: int | None
    """Clips with which this comparison would see one point in four of five cases at the 5 % level."""
    groups: list[DifferenceDocument]
    """Of its parts; empty where the headline is the mean over rows."""
    types: list[DifferenceDocument]
    """Of each question type."""
    paired_t_p: float | None
    """p value of Student's paired t, rows taken as independent."""
    strip_reasoning: bool
    """Whether tagged reasoning was taken out of both runs' replies before scoring."""
    won: list[str]
    """Ids on which B scores higher."""
    lost: list[str]
    """Ids on which A scores higher."""
    speed_a: SpeedDocument
    """What A's rows cost."""
    speed_b: SpeedDocument
    """What B's rows cost."""
