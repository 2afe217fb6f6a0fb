/* parameters = ["name"] */
-- The kind of memory that a call allocates or frees, by the name of the call.
CASE
    WHEN name LIKE '%Async' OR name LIKE '%MemPoolTrimTo' THEN 'stream-ordered'
    WHEN name LIKE '%Host%' THEN 'pinned host'
    WHEN name LIKE '%Managed' THEN 'managed'
    WHEN name LIKE '%Array%' THEN 'array'
    WHEN name SIMILAR TO 'cuMem(Create|Release|Map|Unmap|SetAccess|AddressReserve|AddressFree)' THEN 'virtual'
    ELSE 'device'
END;
