"""`roundhouse --server URL jobs …`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption
from roundhouse.build.terminal import answer_console

from .options import FollowOption, JobArgument, PageOption, SizeOption
from .session import client_of

__all__ = ["jobs"]

jobs = typer.Typer(help="List, show, follow, cancel and retry jobs of a console.", no_args_is_help=True)


@jobs.command("list")
def list_jobs(
    context: typer.Context,
    kind: Annotated[str | None, typer.Option(help="build, verify, remove, deploy, undeploy or drill.")] = None,
    state: Annotated[str | None, typer.Option(help="queued, running, succeeded, failed, cancelled or interrupted.")] = None,
    text: Annotated[str | None, typer.Option(help="Part of what it is about or of who asked for it.")] = None,
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List jobs, the newest first."""
    client = client_of(context)
    from ..jobs.records import JobRow
    from ..paging import Paged
    from .telling import print_record, show_list
    from .views import jobs_table

    query = {"kind": kind, "state": state, "text": text, "page": page, "size": size}
    found = client.get("/jobs", Paged[JobRow], query)
    if json:
        print_record(found)
    else:
        show_list(found, jobs_table(found.items), nothing="No jobs.")


@jobs.command("show")
def show_job(context: typer.Context, job: JobArgument, json: JsonOption = False) -> None:
    """Show a job: what it is, where it is, its stages and how it ended."""
    client = client_of(context)
    from ..jobs.records import JobAnswer
    from .telling import print_record
    from .views import job_view

    found = client.get(f"/jobs/{job}", JobAnswer)
    if json:
        print_record(found)
    else:
        answer_console().print(job_view(found))


@jobs.command("log")
def log(
    context: typer.Context,
    job: JobArgument,
    attempt: Annotated[int | None, typer.Option(min=1, help="Of which attempt. Default: the latest.")] = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Print a job's log on standard output. With --follow it is shown on standard error until the job ends."""
    client = client_of(context)
    if follow:
        from .following import follow_job
        from .telling import print_record

        ended = follow_job(client, job)
        if json:
            print_record(ended)
        return
    from ..jobs.records import LogAnswer, LogRow
    from .telling import print_record

    lines: list[LogRow] = []
    while True:
        query = {"attempt": attempt, "after": lines[-1].number if lines else 0}
        more = client.get(f"/jobs/{job}/log", LogAnswer, query)
        if not more.lines:
            break
        lines += more.lines
        if not json:
            typer.echo("\n".join(line.text for line in more.lines))
        attempt = more.attempt
    if json:
        print_record(lines)


@jobs.command("cancel")
def cancel(context: typer.Context, job: JobArgument, json: JsonOption = False) -> None:
    """Cancel a job that waits or runs."""
    client = client_of(context)
    from ..jobs.records import JobDetail
    from .telling import print_record

    found = client.post(f"/jobs/{job}/cancel", JobDetail)
    if json:
        print_record(found)
    else:
        ending = "is cancelled" if found.state == "cancelled" else "is being ended"
        answer_console().print(f"job {job} {ending}")


@jobs.command("retry")
def retry(context: typer.Context, job: JobArgument, follow: FollowOption = False, json: JsonOption = False) -> None:
    """Have a job that did not succeed done once more; its number stays."""
    client = client_of(context)
    from ..jobs.records import JobDetail
    from .telling import print_record, tell_queued

    # Asked twice, the second time would find it in line already and be refused.
    found = client.post(f"/jobs/{job}/retry", JobDetail, repeatable=False)
    if not follow:
        tell_queued(client, [job], json=json, answer=found)
        return
    from .following import follow_job

    ended = follow_job(client, job)
    if json:
        print_record(ended)
