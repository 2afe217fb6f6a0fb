"""The catalog tells what a kernel does and where it comes from, by its name; its own examples are the first test."""

import re

import duckdb
import pytest

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.model.kernel_catalog import families, macros, provenances, words_pattern
from nsys_insight.sql.quoting import literal

FAMILIES = {
    "gemm", "attention", "norm", "rope", "activation", "elementwise", "reduction", "copy/cast", "gather/scatter",
    "sort/topk", "softmax", "embedding", "comm", "quantise", "memory", "other",
}  # fmt: skip
PROVENANCES = {
    "cuBLAS", "cuDNN", "CUTLASS", "CuTe", "Triton", "Inductor", "FlashAttention", "NCCL", "CUB/Thrust",
    "PyTorch native", "hand-written",
}  # fmt: skip

CATALOGS = {"kernel_family": families(), "kernel_provenance": provenances()}
both = pytest.mark.parametrize("macro", CATALOGS)


@pytest.fixture(scope="module")
def tell():
    """Apply SQL to names: `tell("kernel_family(name)", names)` gives one value for each, in order."""
    connection = duckdb.connect()
    for statement in macros():
        connection.execute(statement)

    def apply(expression, names):
        rows = ", ".join(f"({place}, {literal(name)})" for place, name in enumerate(names))
        query = f"SELECT {expression} FROM (VALUES {rows}) AS names(place, name) ORDER BY place"
        return [value for (value,) in connection.execute(query).fetchall()]

    return apply


def examples(macro):
    return [(place, name) for place, entry in enumerate(CATALOGS[macro]) for name in entry.examples]


@both
def test_an_example_is_matched_by_its_own_entry_and_no_earlier_one(macro, tell):
    own, names = zip(*examples(macro), strict=True)
    matched = [tell(f"regexp_matches(name, {literal(entry.regex)})", names) for entry in CATALOGS[macro]]
    first = [next((place for place, hits in enumerate(matched) if hits[column]), None) for column in range(len(names))]

    assert [(name, place) for name, place in zip(names, first, strict=True)] == list(zip(names, own, strict=True))


@both
def test_the_macro_gives_an_example_the_value_of_its_entry(macro, tell):
    own, names = zip(*examples(macro), strict=True)

    assert tell(f"{macro}(name)", names) == [CATALOGS[macro][place].value for place in own]


@both
def test_every_word_and_every_pattern_has_an_example(macro, tell):
    unproven = [
        (entry.value, part)
        for entry in CATALOGS[macro]
        for part in [words_pattern((word,)) for word in entry.words] + list(entry.patterns)
        if not any(tell(f"regexp_matches(name, {literal(part)})", entry.examples))
    ]

    assert unproven == []


@both
def test_python_reads_the_regular_expressions_as_duckdb_does(macro, tell):
    names = [name for _, name in examples(macro)]

    for entry in CATALOGS[macro]:
        in_python = [bool(re.search(entry.regex, name)) for name in names]
        assert tell(f"regexp_matches(name, {literal(entry.regex)})", names) == in_python


def test_the_values_are_those_of_the_design():
    assert {entry.value for entry in families()} == FAMILIES
    assert {entry.value for entry in provenances()} | {"hand-written"} == PROVENANCES


@both
def test_a_kernel_without_a_name_is_of_unknown_family_and_provenance(macro, tell):
    assert tell(f"{macro}(NULLIF(name, ''))", [""]) == [None]


@pytest.mark.parametrize("name", ["", "kernel", "jacobi_step(double *, int)", "void probe_GPU2<128, 4>(int*, int*)"])
def test_a_name_that_the_catalog_does_not_know_is_other_and_hand_written(name, tell):
    assert tell("kernel_family(name)", [name]) == ["other"]
    assert tell("kernel_provenance(name)", [name]) == ["hand-written"]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("property_kernel(int)", "other"),  # rope
        ("europe_options(float *)", "other"),  # rope
        ("resort_particles(int *, int)", "other"),  # sort
        ("getAddress(int *)", "other"),  # add
        ("address_table(int *)", "other"),  # add
        ("_Z12addressTablePii", "other"),  # add
        ("_Z7addresiPi", "other"),  # add, which this name's length says is only its beginning
        ("normalize_image(float *)", "other"),  # norm
        ("enormous(float *)", "other"),  # norm
        ("checksum(int *)", "other"),  # sum
        ("quantile(float *)", "other"),  # quant
        ("catalog_build(int *)", "other"),  # cat, log
        ("logits_processor(float *)", "other"),  # log
        ("export_kernel(float *)", "other"),  # exp
        ("maxwell_solver(double *)", "other"),  # max
        ("advance(SoftmaxState *, add_tag)", "other"),  # a parameter's type is not the kernel's name
        ("void advance<Relu>(float *)", "other"),  # nor is a template argument
        ("gemma_rms_norm_kernel", "norm"),  # gemm
        ("gemma3_rope_kernel", "rope"),  # gemm
        ("void flashinfer::norm::GemmaRMSNormKernel<(unsigned int)8, __nv_bfloat16>(T2 *)", "norm"),  # attention, gemm
        ("scaled_masked_softmax_warp_forward", "softmax"),  # mask, scale
        ("void tensorrt_llm::kernels::quantize_kernel<float>(GemmParams)", "quantise"),  # gemm
        ("triton_poi_fused_addmm_relu_1", "activation"),  # the pointwise neighbour of a gemm
        ("void at::native::(anonymous namespace)::LayerNormBackwardCUDAKernel<float>(long)", "norm"),
        ("attention_mask_kernel", "elementwise"),  # attention
    ],
)
def test_a_word_inside_another_does_not_mislead(name, family, tell):
    assert tell("kernel_family(name)", [name]) == [family]


@pytest.mark.parametrize(
    ("names", "family", "provenance"),
    [
        (
            [
                "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float, (bool)0>(int, T2)",
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, false>(int)",
                "vectorized_layer_norm_kernel",
                "_ZN2at6native53_GLOBAL__N__21739cd4_20_layer_norm_kernel_cu_9c5ada8a28vectorized_layer_norm_kernelIN3c104HalfEfLb0EEEviT0_PKT_S8_S8_PS5_S9_PS6_",
            ],
            "norm",
            "PyTorch native",
        ),
        (
            [
                "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, double>(cublasLt::cublasSplitKParams<T6>)",
                "splitKreduce_kernel",
                "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiddddLb1ELb0ELb0EEEvNS_18cublasSplitKParamsIT4_EEPKT2_PKT3_",
            ],
            "gemm",
            "cuBLAS",
        ),
        (["add(float *, const float *, int)", "add", "_Z3addPfPKfi", "_Z3addiPfS_"], "elementwise", "hand-written"),
        (["rowsum(const float *, float *, int)", "rowsum", "_Z6rowsumPKfPfi"], "reduction", "hand-written"),
        (["relu(float *, int)", "relu", "_Z4reluPfi"], "activation", "hand-written"),
    ],
)
def test_full_short_and_mangled_names_of_a_kernel_tell_the_same(names, family, provenance, tell):
    assert set(tell("kernel_family(name)", names)) == {family}
    assert set(tell("kernel_provenance(name)", names)) == {provenance}


@pytest.mark.parametrize(
    ("name", "provenance"),
    [
        # Whose namespace it is decides, not whose types its templates hold.
        ("void at::native::radixSortKVInPlace<(int)-2, at_cuda_detail::cub::Sum>(int)", "PyTorch native"),
        ("void cub::DeviceReduceKernel<at::native::Functor, float *>(T2)", "CUB/Thrust"),
        ("void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *)", "hand-written"),
        ("void flash_attn_ext_f16<(int)128, (int)128>(const char *)", "hand-written"),
        ("gemma_rms_norm_kernel", "hand-written"),
        ("void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<float>(T1 *)", "hand-written"),
        ("_Z3addPfPKfi", "hand-written"),
        ("reduce_kernel", "hand-written"),
    ],
)
def test_a_borrowed_name_does_not_mislead_about_provenance(name, provenance, tell):
    assert tell("kernel_provenance(name)", [name]) == [provenance]


@pytest.mark.parametrize(
    "name", ["soft_max_f32", "softmax", "SoftMax", "MySoftmaxKernel", "_Z7softmaxiPf", "v2softmax"]
)
def test_a_word_is_found_in_any_spelling(name):
    assert re.search(words_pattern(("soft_max",)), name)


@pytest.mark.parametrize("name", ["softmaxed", "unsoftmax", "kernel<softmax>(int)", "kernel(softmax *)"])
def test_a_word_is_found_only_as_a_word_of_the_own_name(name):
    assert not re.search(words_pattern(("soft_max",)), name)


class TestOwnEntries:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_CATALOG_DIR", str(tmp_path))
        return tmp_path

    def test_they_are_tried_first(self, folder, sample):
        (folder / "kernel_families.toml").write_text('[[kernels]]\nfamily = "our add"\nwords = ["add"]\n')
        (folder / "kernel_provenance.toml").write_text(
            "[[kernels]]\nprovenance = 'ours'\npatterns = ['^(scale|add)']\n"
        )
        with nsys_insight.open(sample("churn")) as trace:
            told = {row["name"]: (row["family"], row["provenance"]) for row in trace.top().iter_rows(named=True)}
        by_word = {name.partition("(")[0]: value for name, value in told.items()}
        assert by_word["add"] == ("our add", "ours")
        assert by_word["scale"][1] == "ours"
        assert by_word["scale"][0] != "our add"
        assert by_word["relu"][1] == "hand-written"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[[kernels]]\nwords = ['add']", "lacks 'family'"),
            ("[[kernels]\n", "is not valid"),
            ("[[kernels]]\nfamily = 'x'\npatterns = ['(']", "is not valid"),
            ("", "lacks 'kernels'"),
        ],
    )
    def test_a_wrong_file_is_named(self, folder, sample, text, said):
        (folder / "kernel_families.toml").write_text(text)
        with pytest.raises(UsageError, match=said) as caught:
            nsys_insight.open(sample("churn"))
        assert "kernel_families.toml" in caught.value.message
        assert caught.value.hint
