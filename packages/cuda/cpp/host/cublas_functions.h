// The functions of cuBLASLt (libcublasLt.so) that products call: PLAIT_CUBLAS_FUNCTION(name,
// exported, parameters). The stand-in of the emulation has the same list.
//
// No include guard: the file is included with one definition of the macro at a time.
PLAIT_CUBLAS_FUNCTION(create, "cublasLtCreate", (Handle *))
PLAIT_CUBLAS_FUNCTION(description_create, "cublasLtMatmulDescCreate",
                      (Description *, int compute, int scale))
PLAIT_CUBLAS_FUNCTION(description_destroy, "cublasLtMatmulDescDestroy", (Description))
PLAIT_CUBLAS_FUNCTION(description_set, "cublasLtMatmulDescSetAttribute",
                      (Description, int attribute, const void *value, size_t bytes))
PLAIT_CUBLAS_FUNCTION(layout_create, "cublasLtMatrixLayoutCreate",
                      (Layout *, int type, uint64_t rows, uint64_t columns, int64_t stride))
PLAIT_CUBLAS_FUNCTION(layout_destroy, "cublasLtMatrixLayoutDestroy", (Layout))
PLAIT_CUBLAS_FUNCTION(layout_set, "cublasLtMatrixLayoutSetAttribute",
                      (Layout, int attribute, const void *value, size_t bytes))
PLAIT_CUBLAS_FUNCTION(preference_create, "cublasLtMatmulPreferenceCreate", (Preference *))
PLAIT_CUBLAS_FUNCTION(preference_destroy, "cublasLtMatmulPreferenceDestroy", (Preference))
PLAIT_CUBLAS_FUNCTION(preference_set, "cublasLtMatmulPreferenceSetAttribute",
                      (Preference, int attribute, const void *value, size_t bytes))
PLAIT_CUBLAS_FUNCTION(heuristic, "cublasLtMatmulAlgoGetHeuristic",
                      (Handle, Description, Layout a, Layout b, Layout c, Layout d, Preference,
                       int count, Choice *, int *found))
PLAIT_CUBLAS_FUNCTION(multiply, "cublasLtMatmul",
                      (Handle, Description, const void *alpha, const void *a, Layout, const void *b,
                       Layout, const void *beta, const void *c, Layout, void *d, Layout,
                       const Algorithm *, void *workspace, size_t bytes, driver::Stream))
