// Curves of a plotting program: formulas become device code, which is evaluated at many points.
#include <cuda.h>
#include <dlfcn.h>

#include <string>
#include <vector>

#include "harness.cuh"

constexpr int POINTS = 1 << 22, CURVES = 3;

struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  template <typename F>
  F* find(const char* name) {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
};

void expect(CUresult result) {
  if (result != CUDA_SUCCESS) fprintf(stderr, "driver: %d\n", int(result)), exit(1);
}

// A polynomial of this degree in x and a parameter.
std::string translate(int degree) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry curve(.param .u64 from, .param .u64 to, .param .f32 parameter) {\n"
      ".reg .b32 %r<5>; .reg .f32 %f<5>; .reg .b64 %d<6>;\n"
      "ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to]; ld.param.f32 %f3, [parameter];\n"
      "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
      "mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %d3, %r4, 4;\n"
      "add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3;\n"
      "ld.global.f32 %f1, [%d4]; mov.f32 %f2, 0f3F800000;\n";
  for (int i = 0; i < degree; ++i) text += "fma.rn.f32 %f2, %f2, %f1, %f3;\n";
  return text + "st.global.f32 [%d5], %f2;\nret;\n}\n";
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto from = allocate<float>(POINTS), to = allocate<float>(POINTS);
  Driver driver;
  auto load = driver.find<decltype(cuModuleLoadData)>("cuModuleLoadData");
  auto unload = driver.find<decltype(cuModuleUnload)>("cuModuleUnload");
  auto get = driver.find<decltype(cuModuleGetFunction)>("cuModuleGetFunction");
  auto launch = driver.find<decltype(cuLaunchKernel)>("cuLaunchKernel");
  std::vector<std::string> texts;
  std::vector<CUmodule> modules(CURVES);
  std::vector<CUfunction> functions(CURVES);
  for (int i = 0; i < CURVES; ++i) texts.push_back(translate(40 + 20 * i));
  auto build = [&](int i) {
    expect(load(&modules[i], texts[i].c_str()));
    expect(get(&functions[i], modules[i], "curve"));
  };
  if (args.is_cured)
    for (int i = 0; i < CURVES; ++i) build(i);
  measure(args, [&](int step) {
    for (int i = 0; i < CURVES; ++i) {
      if (!args.is_cured) build(i);
      float parameter = 0.001f * step;
      void* parameters[] = {&from, &to, &parameter};
      expect(launch(functions[i], POINTS / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
      if (!args.is_cured) expect(unload(modules[i]));
    }
  });
}
