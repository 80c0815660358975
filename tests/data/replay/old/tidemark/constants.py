"""Numbers that everything else is computed from."""

#: Hours from one high water to the next.
SEMIDIURNAL_HOURS = 12.42
#: Hours of the solar half day.
SOLAR_HOURS = 12.0
#: Hours of the lunar day.
LUNAR_DAY_HOURS = 24.84

#: Metres to a foot.
FOOT = 0.3048
#: Metres to a fathom.
FATHOM = 1.8288

#: Marks below this height (metres) are not shown.
LEAST_MARK = 0.05
#: Rows on one page of a printed table.
PAGE_ROWS = 40
#: The name of the reference level.
DATUM = "mean low water"
#: Days that a table covers when nothing is said.
DAYS = 7
