-- A scope that is steps has them as they were found in the trace.
INSERT INTO facts.step_kernels BY NAME FROM internal.scope_step_kernels
