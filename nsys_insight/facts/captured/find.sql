-- All settings, in the order in which nsys wrote them.
SELECT 'META_DATA_EXPORT' AS origin, name, value FROM raw.META_DATA_EXPORT
UNION ALL
SELECT 'EXPORT_META_DATA', name, value FROM raw.EXPORT_META_DATA
UNION ALL
SELECT 'META_DATA_CAPTURE', name, value FROM raw.META_DATA_CAPTURE
