/*
description = "One row: why nsys failed to process events that it had recorded; no row if it did not fail."
[columns]
failures = "The texts of its errors"
*/
SELECT string_agg(DISTINCT failure, '; ' ORDER BY failure) AS failures
FROM (
    SELECT coalesce(
        nullif(trim(regexp_extract(message, 'tag_message\*\] = ([^\n]+)', 1)), ''),
        nullif(trim(regexp_extract(message, 'exception::what: ([^\n]+)', 1)), ''),
        'an error without a text'
    ) AS failure
    FROM diagnostics WHERE message LIKE 'Error when processing events%'
)
HAVING count(*) > 0;
