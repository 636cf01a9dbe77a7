select id, cast(pmod(xxhash64(id), 1000) as int) as customer, date_add(date'2026-01-01', cast(id % 90 as int)) as day
from range(0, 20000)
