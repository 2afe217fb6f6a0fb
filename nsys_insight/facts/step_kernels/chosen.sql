-- A scope of steps takes their kernels from the unscoped trace.
INSERT INTO facts.step_kernels BY NAME FROM internal.scope_step_kernels
