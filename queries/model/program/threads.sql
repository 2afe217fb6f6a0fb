/*
description = "Threads that nsys saw."
[columns]
name = "The thread's name"
*/
SELECT pid_of(t.globalTid) AS process_id, tid_of(t.globalTid) AS thread_id, min(s.value) AS name
FROM raw.ThreadNames AS t
LEFT JOIN raw.StringIds AS s ON s.id = t.nameId
GROUP BY ALL;
