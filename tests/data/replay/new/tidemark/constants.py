"""Numbers that everything else is computed from."""

#: Hours from one high water to the next.
SEMIDIURNAL_HOURS = 12.4206012
#: Hours of the solar half day.
SOLAR_HOURS = 12.0
#: Hours of the lunar day.
LUNAR_DAY_HOURS = 24.8412024

#: Metres to a foot.
FOOT = 0.3048
#: Metres to a fathom: six feet.
FATHOM = 6 * FOOT

#: Marks below this height (metres) are not shown.
LEAST_MARK = 0.02
#: Rows on one page of a printed table.
PAGE_ROWS = 56
#: The name of the reference level.
DATUM = "lowest astronomical tide"
#: Days that a table covers when nothing is said.
DAYS = 14
