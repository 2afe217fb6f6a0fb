-- Empty tables: no operations are found yet.
TRUNCATE internal.launched_process;

CREATE OR REPLACE TABLE internal.step_launched (
    kind ENUM ('kernel', 'copy', 'memset', 'graph', 'H2D', 'D2H'), is_migration BOOLEAN, start_ns BIGINT, end_ns BIGINT,
    size_bytes BIGINT, device_id BIGINT, stream_id BIGINT,
    correlation_id BIGINT, name_id BIGINT, grid BIGINT, block BIGINT,
    call_ns BIGINT, returned_ns BIGINT, call_group ENUM ('launch', 'graph launch', 'copy', 'memset')
)
