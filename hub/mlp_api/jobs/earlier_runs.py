"""Facts about earlier runs that are alike, on the wire: forecasts of run times, and memory that was used."""

from __future__ import annotations

from datetime import datetime

from mlp_api.localized import Text
from mlp_api.types import Response


class ForecastRange(Response):
    """Quantiles of a time: with a chance of about 10 % it is before `p10`, of 50 % before `p50`, of 90 % before `p90`."""

    p10: datetime
    p50: datetime
    p90: datetime


class RunForecast(Response):
    """Forecast of a job from the run times of earlier runs of the same user, with the same shape and the same program or name.

    `start` is null once the job has started, or if too little is known of the jobs ahead of it. `end` is
    null if the job has fewer than two earlier runs, or runs longer than nine of ten of them. `runs` is
    the number of its own earlier runs that count. `because` is the source of the forecast, or says how
    much longer the job runs than its earlier runs.
    """

    start: ForecastRange | None
    end: ForecastRange | None
    runs: int
    because: Text


class MemoryOfEarlierRuns(Response):
    """Memory that the newest alike runs of the same user used, in MiB per rank; cores and memory of their shape do not matter.

    `runs` is their number, `used` the most that a rank used, `asked` what each rank of the newest one had. `ran_out` is the number
    of runs that ran out of memory. `fitting` is the amount that `ram: auto` chooses. `text` says this in a sentence.
    """

    runs: int
    used: int
    asked: int
    ran_out: int
    fitting: int
    text: Text
