"""What a recipe may say: every key, its type, its default and its meaning.

Unknown keys are refused (see `load.py` for the message with the nearest known
name), so a typing error never becomes a silently ignored wish.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

MOST_PIXELS = 2**40
"""Far beyond every context, and numbers that follow from it still fit into 64 bits."""
MOST_FRAMES = 1_000_000
"""Some rules show a frame again where a clip has fewer."""
INT64 = 2**63
"""First number that engines have no room for."""

Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
Tolerated = Count | Share


class Section(BaseModel):
    """Base of all recipe sections: frozen, no unknown keys, no silent conversions of text."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


class Model(Section):
    """Which checkpoint answers."""

    path: str
    """Folder of the checkpoint (relative to the recipe) or its name on the model hub."""
    family: str | None = None
    """Model family, as `vidpipe.models` names it; read from the checkpoint's config when left out."""
    trust_remote_code: bool = False
    """Allow the checkpoint to run Python code of its own."""


class Sampling(Section):
    """Which frames of a clip the model sees. A key left out means the family's own default."""

    rule: Literal["vllm", "hf", "native", "ov2_eval"] | None = None
    """Whose index rule: vLLM's loader, the Hugging Face processor, the model's own repository (`native`), or the
    one behind LLaVA-OneVision-2's published scores (`ov2_eval`). Families have some of them; docs/models.md."""
    fps: Annotated[float, Field(gt=0)] | None = None
    """Frames per second of video to aim for."""
    num_frames: Annotated[int, Field(ge=1, le=MOST_FRAMES)] | None = None
    """Exact number of frames in place of a rate, for rules that have that (not together with `fps`)."""
    min_frames: Annotated[int, Field(ge=1)] | None = None
    """Lower bound on the number of frames (a shorter clip gives what it has)."""
    max_frames: Annotated[int, Field(ge=1)] | None = None
    """Upper bound on the number of frames."""
    min_pixels: Annotated[int, Field(ge=1, le=MOST_PIXELS)] | None = None
    """Lower bound that the resize rule aims for, in the family's unit (Qwen3-VL: frames x height x width; others:
    height x width)."""
    max_pixels: Annotated[int, Field(ge=1, le=MOST_PIXELS)] | None = None
    """Upper bound that the resize rule aims for, in the same unit."""
    video_backend: Literal["frames", "codec"] = "frames"
    """What is shown of a video: sampled frames, or canvases packed with the patches that its codec spent bits on, which
    the checkpoint's own code makes (LLaVA-OneVision-2; docs/models.md)."""
    canvases: Annotated[int, Field(ge=1)] | None = None
    """`codec`: number of canvases to aim for."""
    codec_fallback: Literal["fail", "frames"] = "fail"
    """`codec`: a clip that it cannot take fails, or is shown as frames, which its rows note."""
    time_base: Literal["real", "nominal"] = "real"
    """Times in the prompt: the file's presentation times, or index / average fps as upstream computes them."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Sampling:
        for low, high in (("min_frames", "max_frames"), ("min_pixels", "max_pixels")):
            a, b = getattr(self, low), getattr(self, high)
            if a is not None and b is not None and a > b:
                raise ValueError(f"{low} {a} is above {high} {b}")
        if self.fps is not None and self.num_frames is not None:
            raise ValueError("fps and num_frames exclude each other; keep one")
        return self


class Pruning(Section):
    """Dropping vision tokens after the encoder."""

    method: Literal["evs", "vidcom2"]
    """Which rule chooses the tokens to keep."""
    rate: Annotated[float, Field(gt=0, lt=1)]
    """Share of the vision tokens to drop."""


class EngineSection(Section):
    """Which engine runs the model, and how."""

    name: Literal["vllm", "sglang", "fake"] = "vllm"
    """`vllm`: the CUDA or the CPU build, whichever is installed. `sglang`: SGLang, which Moss-VL needs and takes when
    this is left out. `fake`: replies by a script, for tests."""
    encoder_graphs: Literal["auto", "on", "off"] = "auto"
    """CUDA graphs for the vision encoder: `auto` where the plan expects them to save time and a measurement at the
    engine's start agrees, `on` wherever they take a video without much padding."""
    data_parallel: Annotated[int, Field(ge=1)] = 1
    """Engines that one run starts, each with devices of its own: on this host, where one feed serves them all, or with
    `--on ray` in the cluster."""
    unknown_version: Literal["warn", "refuse"] = "refuse"
    """With a version of vLLM that a needed repair was not tested with, or of SGLang that vidpipe was not: go on all the
    same and say so, or refuse."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Handed to vLLM's `EngineArgs`, or SGLang's `ServerArgs`, as they are (`fake`: the script)."""

    @field_validator("encoder_graphs", mode="before")
    @classmethod
    def _words_of_yaml(cls, value: Any) -> Any:
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class Generation(Section):
    """How answers are decoded; names and meanings are those of vLLM's SamplingParams, with SGLang too."""

    max_tokens: Annotated[int, Field(ge=1, lt=INT64)] = 64
    """Longest answer, in tokens; an answer cut there has the status `length`."""
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """0 takes the likeliest token always."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Nucleus sampling; 1 is off."""
    seed: Annotated[int, Field(ge=-INT64, lt=INT64)] | None = None
    """Seed of the sampler; only of use above temperature 0."""
    stop: list[str] = Field(default_factory=list)
    """Texts that end an answer."""
    json_schema: dict[str, Any] | None = None
    """JSON schema that the whole answer is held to while it is decoded, and checked against afterwards."""
    choice: Annotated[list[str], Field(min_length=1)] | None = None
    """The answer is held to one of these texts."""
    regex: str | None = None
    """The answer is held to this regular expression."""

    @model_validator(mode="after")
    def _one_form(self) -> Generation:
        forms = [name for name in ("json_schema", "choice", "regex") if getattr(self, name) is not None]
        if len(forms) > 1:
            raise ValueError(f"{' and '.join(forms)} exclude each other; keep one")
        return self

    @field_validator("json_schema")
    @classmethod
    def _a_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None:
            from jsonschema.exceptions import SchemaError
            from jsonschema.validators import validator_for

            try:
                validator_for(value).check_schema(value)
            except SchemaError as error:
                raise ValueError(f"not a JSON schema: {error.message}") from None
        return value

    @field_validator("regex")
    @classmethod
    def _an_expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return value


class ToleranceByCause(Section):
    """Tolerances apart for what the files did and what the engine did."""

    media: Tolerated = 0
    """Rows that may fail for their media or their own values."""
    engine: Tolerated = 0
    """Rows that may fail in the engine."""


class Output(Section):
    """What counts as a good run."""

    tolerance: Tolerated | ToleranceByCause = 0
    """Failed rows that still give exit code 0: a count, or a share below 1. Where it is given, the run ends as soon as
    more have failed; left out, every row gets its turn first."""


class Media(Section):
    """How media files are found and what becomes of broken ones."""

    on_partial: Literal["run", "fail"] = "run"
    """A clip of which some asked frames do not decode: answer it, marked, or fail its rows."""
    allow_outside_root: bool = False
    """Allow paths that lead out of `media_root`."""
    schemes: list[Literal["http", "https", "s3", "gs", "hf"]] = Field(default_factory=list)
    """URL schemes that videos may have beside `file`; such clips are copied into a bounded folder first."""
    cache_bytes: Annotated[int, Field(ge=1)] = 20 * 2**30
    """Bound of that folder (`$XDG_CACHE_HOME/vidpipe/media`)."""
    decode_timeout_s: Annotated[float, Field(gt=0)] | None = None
    """Longest time to decode a clip; left out: half a minute and as long as the clip plays."""


class Feed(Section):
    """How clips are brought to the engine."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Worker processes, which decode (`--on ray`: actors, in the whole cluster); left out: by cores at first, and more
    when the engine has to wait for them."""
    prepare: Literal["auto", "workers", "engine"] = "auto"
    """Where clips go through the model's processor; `auto`: in the workers, with vLLM's CPU build in the engine."""
    memory: Annotated[int, Field(ge=1)] | None = None
    """Bytes of decoded and prepared clips in flight, or a text like `4GiB`; left out: a quarter of the memory.
    A clip larger than that passes alone."""
    queue_depth: Annotated[int, Field(ge=1)] | None = None
    """Rows in the engine, running and waiting; left out: twice as many as it runs at a time."""

    @field_validator("memory", mode="before")
    @classmethod
    def _bytes_from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)", value.strip())
        if match is None:
            raise ValueError(
                f"{value!r} is no size; write bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB"
            )
        number, unit = match.groups()
        return int(float(number) * (1024 if "i" in unit else 1000) ** "BKMGT".index(unit[0]))


class Record(Section):
    """How the run directory is kept."""

    sync_s: Annotated[float, Field(gt=0)] = 5.0
    """Finished rows reach the disk after at most this many seconds (a killed process loses none)."""
    lease_s: Annotated[float, Field(gt=0)] = 60.0
    """A process that gives no sign of life for so many seconds is taken for dead; 300 or more on NFS."""


ReplyCause = Literal[
    "length", "empty", "repetition", "control_characters", "surrogate", "not_json", "mismatch", "prompt_too_long"
]
"""Outcomes that come again when nothing is changed."""
PassingCause = Literal["no_completion", "timeout", "not_openable"]
"""Outcomes that may be different the next time: of a busy engine, or a busy file server."""


def _refuse_odd_values(sampling: dict[str, Any], generation: dict[str, Any]) -> None:
    """Refuse what no row could have, before the first one that would get it.

    Raises:
        ValueError: naming the key.
    """
    sections: tuple[tuple[str, type[Section], dict[str, Any]], ...] = (
        ("generation", Generation, generation),
        ("sampling", Sampling, sampling),
    )
    for name, section, values in sections:
        try:
            section.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, (name, *first['loc'])))}: {first['msg']}") from None


class RetryRule(Section):
    """Rows that are asked again, and what is different then."""

    when: Annotated[list[ReplyCause | PassingCause], Field(min_length=1)]
    """Outcomes: status `length`, marks on the reply (docs/output.md), error kinds."""
    times: Annotated[int, Field(ge=1, le=10)] = 1
    """How often a row is asked again by this rule."""
    generation: dict[str, Any] = Field(default_factory=dict)
    """Keys of `generation` to replace. Above temperature 0 each try has a seed of its own."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Keys of `sampling` to replace; the clip is decoded again."""

    @property
    def changes_something(self) -> bool:
        """Whether its outcomes come again when nothing is changed."""
        return not set(self.when).isdisjoint(get_args(ReplyCause))

    @model_validator(mode="after")
    def _a_change_that_can_help(self) -> RetryRule:
        _refuse_odd_values(self.sampling, self.generation)
        if self.changes_something and not (self.generation or self.sampling):
            raise ValueError(
                "the same question gets the same reply; say what changes, for example generation: {max_tokens: 256}"
            )
        if "prompt_too_long" in self.when and not self.sampling:
            raise ValueError("a prompt gets shorter by other frames only, for example sampling: {max_frames: 32}")
        return self


class Retry(Section):
    """When to ask again, and when to give up."""

    attempts: Annotated[int, Field(ge=1)] = 3
    """Engines or processes that may die while a row runs before it gets an error record (`poison_row`)."""
    engine_restarts: Annotated[int, Field(ge=0)] = 3
    """Times that one process starts a dead engine again before it gives up (exit code 3)."""
    engine_timeout_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds without any progress after which the engine is ended (`engine_timeout`, exit code 3)."""
    rules: list[RetryRule] = Field(default_factory=list)
    """Outcomes for which a row is asked again; the first rule that fits and is not used up counts. By default none."""


class Override(Section):
    """Other values for the rows that match; the first match wins."""

    when: dict[str, Any] = Field(min_length=1)
    """Row columns (dots reach into nested values) and the values they must have."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Keys of `sampling` to replace."""
    generation: dict[str, Any] = Field(default_factory=dict)
    """Keys of `generation` to replace."""

    @model_validator(mode="after")
    def _values_that_rows_can_have(self) -> Override:
        _refuse_odd_values(self.sampling, self.generation)
        return self


class Recipe(Section):
    """One run: which rows, which model, how."""

    description: str = ""
    """Free text, printed when the run ends and kept in the run directory."""
    manifest: str
    """JSONL, CSV, TSV or Parquet file of rows, or a folder of clips (relative to the recipe)."""
    media_root: str | None = None
    """Folder that relative video paths start from; the manifest's own folder when left out."""
    model: Model
    """Which checkpoint answers."""
    sampling: Sampling = Field(default_factory=Sampling)
    """Which frames the model sees."""
    pruning: Pruning | None = None
    """Dropping vision tokens after the encoder; off when left out."""
    engine: EngineSection = Field(default_factory=EngineSection)
    """Which engine runs the model."""
    generation: Generation = Field(default_factory=Generation)
    """How answers are decoded."""
    prompt: str | None = None
    """Jinja2 template of the user text; `{{ question }}` stands for that column. Left out: question and options."""
    template: str | None = None
    """Instead of `prompt`: the name of a published wording, such as `vsi.official`; docs/benchmarks.md."""
    system: str | None = None
    """System text for rows that bring none."""
    overrides: list[Override] = Field(default_factory=list)
    """Other sampling or generation values for some rows."""
    special_tokens: Literal["literal", "refuse"] = "literal"
    """Control words like <|im_end|> in a question: kept as plain text, or the row is refused."""
    media: Media = Field(default_factory=Media)
    """How media files are found."""
    feed: Feed = Field(default_factory=Feed)
    """How clips are brought to the engine."""
    output: Output = Field(default_factory=Output)
    """What counts as a good run."""
    scorer: str | None = None
    """Profile that `vidpipe score` takes for rows that name none; docs/benchmarks.md."""
    cluster_by: str | None = None
    """Column whose equal values make rows depend on each other, for standard errors; left out: the clip."""
    breakdowns: list[str] | None = None
    """Categories and other columns that scores are reported by; left out: all categories."""
    strip_reasoning: bool = False
    """Take tagged reasoning out of replies before they are scored; the score says so."""
    retry: Retry = Field(default_factory=Retry)
    """When to ask again, and when to give up."""
    record: Record = Field(default_factory=Record)
    """How the run directory is kept."""

    @model_validator(mode="after")
    def _one_wording(self) -> Recipe:
        if self.prompt is not None and self.template is not None:
            raise ValueError("prompt and template exclude each other; keep one")
        return self
