"""What a user can do about failed rows, by the kind of error."""

from __future__ import annotations

ADVICE: dict[str, str] = {
    "not_found": "check media_root and the paths; vidpipe check lists every file that is missing",
    "not_a_file": "name a file, not a folder; a folder of pictures goes into the column frames",
    "empty_file": "copy the file again; it has no bytes",
    "not_media": "fetch the file again; often an error page was saved in its place",
    "not_openable": "see what vidpipe probe says of the file; convert it with ffmpeg if it plays elsewhere",
    "no_video_stream": "leave the row out, or convert the file: it has no video in it",
    "unsupported_codec": "convert the file with ffmpeg to H.264",
    "truncated": "fetch the file again, or set media.on_partial: run to use what there is",
    "corrupt": "fetch the file again, or set media.on_partial: run to use what there is",
    "aspect_ratio": "crop the video; the model takes none that is so long and narrow",
    "too_large": "set sampling.max_pixels, or scale the video down",
    "protocol": "give a path, or allow the scheme with media.schemes",
    "outside_root": "move the files below media_root, or set media.allow_outside_root: true",
    "timeout": "raise media.decode_timeout_s, or see what vidpipe probe says of the file",
    "bad_window": "correct clip_start and clip_end; vidpipe probe says how long the video is",
    "missing_field": "fill the column in, or leave the row out; vidpipe check lists all such rows",
    "bad_id": "give each row an id of its own; vidpipe check lists all such rows",
    "bad_options": "give options as a list of texts; vidpipe check lists all such rows",
    "bad_value": "correct the value; vidpipe check lists most such rows",
    "special_token": "reword the text, or set special_tokens: literal",
    "prompt_too_long": "lower sampling.max_frames or max_pixels, shorten the text, or raise engine.args.max_model_len "
    "(SGLang: context_length)",
    "no_completion": "run it again with --fresh; if it stays, look into the engine's log",
    "poison_row": "look into the engine's log for what the row does to it, then leave the row out",
}
"""A sentence for each kind that a row can have."""
