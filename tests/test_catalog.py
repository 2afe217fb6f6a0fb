"""The catalog finds the family and the provenance of a kernel by its name; its own examples are the first test."""

import re

import duckdb
import pytest

import nsys_insight
from nsys_insight.errors import UsageError
from nsys_insight.model.kernel_catalog import build_words_pattern, read_families, read_provenances, write_macros
from nsys_insight.sql.quoting import literal

FAMILIES = {
    "gemm", "attention", "norm", "rope", "activation", "elementwise", "reduction", "copy/cast", "gather/scatter",
    "sort/topk", "softmax", "embedding", "comm", "quantise", "memory", "other",
}  # fmt: skip
PROVENANCES = {
    "cuBLAS", "cuDNN", "CUTLASS", "CuTe", "Triton", "Inductor", "FlashAttention", "NCCL", "CUB/Thrust",
    "PyTorch native", "XLA", "CuPy", "Numba", "OpenACC", "OpenMP", "Kokkos", "RAJA", "SYCL", "TensorRT", "Julia",
    "cuSPARSE", "cuFFT", "cuSOLVER", "Halide", "IREE", "Mojo", "cuTile", "hand-written",
}  # fmt: skip

CATALOGS = {"kernel_family": read_families(), "kernel_provenance": read_provenances()}
for_both_macros = pytest.mark.parametrize("macro", CATALOGS)


@pytest.fixture(scope="module")
def apply_sql():
    """Apply SQL to names: `apply_sql("kernel_family(name)", names)` returns one value for each."""
    connection = duckdb.connect()
    for statement in write_macros():
        connection.execute(statement)

    def apply(expression, names):
        rows = ", ".join(f"({place}, {literal(name)})" for place, name in enumerate(names))
        query = f"SELECT {expression} FROM (VALUES {rows}) AS names(place, name) ORDER BY place"
        return [value for (value,) in connection.execute(query).fetchall()]

    return apply


def examples(macro):
    return [(place, name) for place, entry in enumerate(CATALOGS[macro]) for name in entry.examples]


@for_both_macros
def test_an_example_is_matched_by_its_own_entry_and_no_earlier_one(macro, apply_sql):
    expected_numbers, names = zip(*examples(macro), strict=True)
    matches = [apply_sql(f"regexp_matches(name, {literal(entry.regex)})", names) for entry in CATALOGS[macro]]
    first_numbers = [
        next((place for place, hits in enumerate(matches) if hits[column]), None) for column in range(len(names))
    ]

    assert [(name, place) for name, place in zip(names, first_numbers, strict=True)] == list(
        zip(names, expected_numbers, strict=True)
    )


@for_both_macros
def test_the_macro_gives_an_example_the_value_of_its_entry(macro, apply_sql):
    entry_numbers, names = zip(*examples(macro), strict=True)

    assert apply_sql(f"{macro}(name)", names) == [CATALOGS[macro][place].value for place in entry_numbers]


@for_both_macros
def test_every_word_and_every_pattern_has_an_example(macro, apply_sql):
    untested_words = [
        (entry.value, part)
        for entry in CATALOGS[macro]
        for part in [build_words_pattern((word,)) for word in entry.words] + list(entry.patterns)
        if not any(apply_sql(f"regexp_matches(name, {literal(part)})", entry.examples))
    ]

    assert untested_words == []


@for_both_macros
def test_python_reads_the_regular_expressions_as_duckdb_does(macro, apply_sql):
    names = [name for _, name in examples(macro)]

    for entry in CATALOGS[macro]:
        in_python = [bool(re.search(entry.regex, name)) for name in names]
        assert apply_sql(f"regexp_matches(name, {literal(entry.regex)})", names) == in_python


def test_the_values_are_complete():
    assert {entry.value for entry in read_families()} == FAMILIES
    assert {entry.value for entry in read_provenances()} | {"hand-written"} == PROVENANCES


@for_both_macros
def test_a_kernel_without_a_name_is_of_unknown_family_and_provenance(macro, apply_sql):
    assert apply_sql(f"{macro}(NULLIF(name, ''))", [""]) == [None]


@pytest.mark.parametrize("name", ["", "kernel", "jacobi_step(double *, int)", "void probe_GPU2<128, 4>(int*, int*)"])
def test_an_unknown_name_is_other_and_hand_written(name, apply_sql):
    assert apply_sql("kernel_family(name)", [name]) == ["other"]
    assert apply_sql("kernel_provenance(name)", [name]) == ["hand-written"]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("property_kernel(int)", "other"),  # not rope
        ("europe_options(float *)", "other"),  # not rope
        ("resort_particles(int *, int)", "other"),  # not sort
        ("getAddress(int *)", "other"),  # not add
        ("address_table(int *)", "other"),  # not add
        ("_Z12addressTablePii", "other"),  # not add
        ("_Z7addresiPi", "other"),  # not add: the mangled name is longer
        ("normalize_image(float *)", "other"),  # not norm
        ("enormous(float *)", "other"),  # not norm
        ("checksum(int *)", "other"),  # not sum
        ("quantile(float *)", "other"),  # not quant
        ("catalog_build(int *)", "other"),  # neither cat nor log
        ("logits_processor(float *)", "other"),  # not log
        ("export_kernel(float *)", "other"),  # not exp
        ("maxwell_solver(double *)", "other"),  # not max
        ("advance(SoftmaxState *, add_tag)", "other"),  # a parameter type is not part of the kernel's name
        ("void advance<Relu>(float *)", "other"),  # a template argument is not part of it
        ("gemma_rms_norm_kernel", "norm"),  # not gemm
        ("gemma3_rope_kernel", "rope"),  # not gemm
        (
            "void flashinfer::norm::GemmaRMSNormKernel<(unsigned int)8, __nv_bfloat16>(T2 *)",
            "norm",
        ),  # neither attention nor gemm
        ("scaled_masked_softmax_warp_forward", "softmax"),  # neither mask nor scale
        ("void tensorrt_llm::kernels::quantize_kernel<float>(GemmParams)", "quantise"),  # not gemm
        ("triton_poi_fused_addmm_relu_1", "activation"),  # the pointwise kernel after a gemm
        ("void at::native::(anonymous namespace)::LayerNormBackwardCUDAKernel<float>(long)", "norm"),
        ("attention_mask_kernel", "elementwise"),  # not attention
    ],
)
def test_a_word_inside_another_does_not_mislead(name, family, apply_sql):
    assert apply_sql("kernel_family(name)", [name]) == [family]


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
def test_full_short_and_mangled_names_have_the_same_values(names, family, provenance, apply_sql):
    assert set(apply_sql("kernel_family(name)", names)) == {family}
    assert set(apply_sql("kernel_provenance(name)", names)) == {provenance}


@pytest.mark.parametrize(
    ("name", "provenance"),
    [
        # The namespace of the kernel decides, not the types in its template arguments.
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
def test_a_borrowed_name_does_not_mislead_about_provenance(name, provenance, apply_sql):
    assert apply_sql("kernel_provenance(name)", [name]) == [provenance]


@pytest.mark.parametrize(
    "name", ["soft_max_f32", "softmax", "SoftMax", "MySoftmaxKernel", "_Z7softmaxiPf", "v2softmax"]
)
def test_a_word_is_found_in_any_spelling(name):
    assert re.search(build_words_pattern(("soft_max",)), name)


@pytest.mark.parametrize("name", ["softmaxed", "unsoftmax", "kernel<softmax>(int)", "kernel(softmax *)"])
def test_a_word_is_found_only_in_the_kernels_own_name(name):
    assert not re.search(build_words_pattern(("soft_max",)), name)


class TestUserEntries:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("NSYS_INSIGHT_CATALOG_DIR", str(tmp_path))
        return tmp_path

    def test_they_have_priority(self, folder, sample):
        (folder / "kernel_families.toml").write_text('[[kernels]]\nfamily = "our add"\nwords = ["add"]\n')
        (folder / "kernel_provenance.toml").write_text(
            "[[kernels]]\nprovenance = 'ours'\npatterns = ['^(scale|add)']\n"
        )
        with nsys_insight.open(sample("churn")) as trace:
            values = {row["name"]: (row["family"], row["provenance"]) for row in trace.top().iter_rows(named=True)}
        value_by_word = {name.partition("(")[0]: value for name, value in values.items()}
        assert value_by_word["add"] == ("our add", "ours")
        assert value_by_word["scale"][1] == "ours"
        assert value_by_word["scale"][0] != "our add"
        assert value_by_word["relu"][1] == "hand-written"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[[kernels]]\nwords = ['add']", "lacks 'family'"),
            ("[[kernels]\n", "is not valid"),
            ("[[kernels]]\nfamily = 'x'\npatterns = ['(']", "is not valid"),
            ("", "lacks 'kernels'"),
        ],
    )
    def test_a_wrong_file_is_named(self, folder, sample, text, message):
        (folder / "kernel_families.toml").write_text(text)
        with pytest.raises(UsageError, match=message) as caught:
            nsys_insight.open(sample("churn"))
        assert "kernel_families.toml" in caught.value.message
        assert caught.value.hint
