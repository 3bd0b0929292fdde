import subprocess
import sys

import pytest

from vidpipe.errors import CapabilityError
from vidpipe.models.registry import FAMILIES, family_of, get_family


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_found_by_name_and_by_config(name: str) -> None:
    family = get_family(name)
    assert family.name == name
    for model_type in family.model_types:
        assert family_of({"model_type": model_type}, "m").name == name


def test_unknown_ones_are_refused_with_the_known() -> None:
    with pytest.raises(CapabilityError, match="qwen3_vl"):
        get_family("gpt")
    with pytest.raises(CapabilityError, match="'llama'"):
        family_of({"model_type": "llama"}, "m")


def test_listing_imports_no_family() -> None:
    code = "import sys, vidpipe.models.registry; sys.exit('vidpipe.models.qwen3_vl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
