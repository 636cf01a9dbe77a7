"""The table that random queries ask, and the queries."""

from __future__ import annotations

from random import Random

COLUMNS = (
    "id long, n int, f double, s string, u string, d date, t timestamp, z timestamp_ntz, e decimal(10,2), b boolean, "
    "x int, y int, o string"
)
NAMES = [part.split()[0] for part in COLUMNS.replace("decimal(10,2)", "decimal").split(", ")]
SELECT = """select id, if(id % 13 = 0, null, cast(id % 50 as int)),
 case id % 17 when 0 then double('NaN') when 1 then -0.0d when 2 then null when 3 then double('-Infinity')
   else id % 9 / 4 end,
 if(id % 11 = 0, null, element_at(array('', 'a', 'ab', 'abc', 'b', 'ärger', 'zebra', 'A', 'x%y', 'x_y'),
   cast(id % 10 + 1 as int))),
 concat('https://www.example.com/some/long/prefix/', lpad(cast(id % 977 as string), 5, '0')),
 date_add(date'1999-12-20', cast(id % 60 as int)),
 timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(id % 300 as int)),
 cast(timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(id % 300 as int)) as timestamp_ntz),
 cast(id % 400 as decimal(10,2)) / 8, if(id % 7 = 0, null, id % 8 < 3), cast(id % 23 as int),
 if(id % 19 = 0, null, cast(id % 23 + if(id % 8 = 5, 1, -1) as int)), cast(null as string) from range({start}, {end})"""


class Questions:
    """Queries by a random number generator: the same one asks the same."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def query(self, name: str) -> str:
        """One query of the table, or of what stands for it; three columns in any case."""
        r = self.random
        what = r.choice(["n c, id a, u b", "n c, id a, u b", "count(*) c, sum(id) a, max(u) b"])
        match r.randrange(11):
            case 0:
                return (
                    f"select l.n c, l.id a, r.u b from {name} l join {name} r on l.id = r.id "
                    f"where {self.condition('l.')} and {self.condition('r.')}"
                )
            case 1:
                inner = f"select n from {name} where {self.condition()}"
                return f"select {what} from {name} where {self.condition()} and n in ({inner})"
            case 2:
                inner = f"select min(n) from {name} where {self.condition()}"
                return f"select {what} from {name} where n >= ({inner}) and {self.condition()}"
            case 3:
                either = f"s {r.choice(['=', '<', '>'])} 'abc' or m = {r.randint(0, 50)}"
                return f"select m c, i a, s b from fuzzed where {either}"
            case 4:
                return (
                    f"select l.n c, l.id a, r.u b from {name} l left join "
                    f"(select * from {name} where {self.condition()}) r on l.id = r.id where {self.condition('l.')}"
                )
            case 5:
                first, second = (f"from {name} where {self.condition()}" for _ in range(2))
                return f"select (select count(*) {first}) c, (select sum(id) {second}) a, (select max(u) {first}) b"
            case 6:
                both = f"from w l join w r on l.id = r.id where {self.condition('l.')}"
                return f"with w as (select * from {name} where {self.condition()}) select l.n c, l.id a, r.u b {both}"
            case 7:
                some = r.choice(["order by id, n limit 7", "order by u, id, n limit 3"])  # cuts between no equals
                return f"select n c, id a, u b from (select * from {name} where {self.condition()} {some})"
            case _:
                return f"select {what} from {name} where {self.condition()}"

    def condition(self, prefix: str = "", depth: int = 0) -> str:
        r = self.random
        if depth < 3 and r.random() < 0.45:
            left, right = (self.condition(prefix, depth + 1) for _ in range(2))
            return f"({left} {r.choice(['and', 'and', 'and', 'or'])} {right})"
        if depth < 4 and r.random() < 0.15:
            return f"not ({self.condition(prefix, depth + 1)})"
        return self.leaf(prefix)

    def leaf(self, p: str) -> str:
        r = self.random
        compare = r.choice(["=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
        text = r.choice(["''", "'a'", "'ab'", "'ärger'", "'zzz'", "'A'", "'b'", "null"])
        pattern = r.choice(["'a%'", "'%a'", "'%b%'", "'a_c'", "'x\\\\%y'", "'%'", "''", "'ärg%'", "'A%'"])
        url = f"'https://www.example.com/some/long/prefix/{r.randrange(1100):05d}'"
        day = f"date'{r.choice([1999, 2000])}-{r.choice(['01', '12'])}-{r.randint(1, 31):02d}'"
        time = f"timestamp'2024-03-31 0{r.randint(0, 6)}:{r.randint(0, 59):02d}:00'"
        number = r.choice(["0", "1", "7", "49", "50", "-3", "2.5", "cast(null as int)", "20L"])
        real = r.choice(["0.0d", "-0.0d", "1.5d", "double('NaN')", "double('-Infinity')", "2", "0.25"])
        forms = [
            f"{p}n {compare} {number}",
            f"{p}n {r.choice(['in', 'not in'])} ({r.randrange(50)}, {r.randrange(60)}{r.choice(['', ', null'])})",
            f"{p}n in ({', '.join(str(r.randrange(0, 90, 3)) for _ in range(14))})",
            f"{p}n between {r.randrange(40)} and {r.randrange(60)}",
            f"{p}f {compare} {real}",
            f"{p}f in (0.25d, double('NaN'))",
            f"{p}s {compare} {text}",
            f"{p}s {r.choice(['like', 'not like'])} {pattern}",
            f"{p}s in ('a', 'zebra', 'nope')",
            f"upper({p}s) = 'AB'",
            f"coalesce({p}s, 'b') = 'b'",
            f"length({p}s) > 2",
            f"{p}u {compare} {url}",
            f"{p}u like 'https://www.example.com/some/long/prefix/0{r.randrange(10)}%'",
            f"{p}d {compare} {day}" if "02" not in day else f"{p}d {compare} date'2000-01-03'",
            f"month({p}d) = {r.choice([1, 2, 12])}",
            f"{p}d {compare} {time}",
            f"{p}t {compare} {time}",
            f"hour({p}t) = {r.randint(0, 5)}",
            f"{p}t {compare} {day}",
            f"{p}z {compare} timestamp_ntz'2024-03-31 0{r.randint(0, 6)}:10:00'",
            f"{p}e {compare} {r.choice(['0.125', '12.5', '49.88', '50', '3'])}",
            f"{p}b",
            f"{p}b {compare} {r.choice(['true', 'false', 'null'])}",
            f"{p}x {compare} {p}y",
            f"{p}n {compare} {p}x",
            f"{p}{r.choice(NAMES)} is {r.choice(['', 'not '])}null",
            f"{p}id {compare} {r.randrange(1500)}",
            f"{p}id % 3 = 1",
            f"{p}x + {p}y > 30",
            f"cast({p}n as string) like '1%'",
            r.choice(["true", "false", "cast(null as boolean)"]),
        ]
        return r.choice(forms)
