import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  atLeast,
  bootDriver,
  endOf,
  find,
  killProcess,
  killUser,
  numbered,
  outlivesTwoKills,
  seenLines,
  twentySeconds,
  writeUnit,
} from './host/driver.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

let host: Edgehostd
beforeAll(async () => {
  host = await bootDriver('machine')
})
afterAll(() => host.unplug())

describe('lasting runs of a sandboxed unit', () => {
  it.concurrent(
    'a run outlives its unit that is killed twice: each line is read once, and the exit code is right',
    () => outlivesTwoKills(host, 'long'),
  )

  it.concurrent('the successor of a killed unit learns that the command of a run was killed', async () => {
    await writeUnit(host, 'killed', 'watch', 'killed', twentySeconds)
    await host.output(['systemctl', 'start', 'killed'])
    await atLeast(host, 'killed', 5)
    await killUser(host, 'killed')
    await atLeast(host, 'killed', 12)
    const unit = 'edgehostd-run-killed'
    const shell = await host.sh(`pgrep --parent "$(systemctl show --property=MainPID --value ${unit})"`)
    await killProcess(host, Number(shell))
    await eventually(async () =>
      expect(await endOf(host, 'killed')).toMatchObject({ kind: 'killed', signal: 'SIGKILL' }),
    )
    const lines = await seenLines(host, 'killed')
    expect(lines.length).toBeLessThan(40)
    expect(lines).toEqual(numbered(lines.length))
    // No failed unit is left.
    await eventually(async () =>
      expect(await host.sh(`systemctl list-units --all --plain --no-legend "${unit}*"`)).toBe(''),
    )
  })
})

describe('a lasting run over a reboot', () => {
  it('a run is gone after a reboot, and lines that were read before are not read again', async () => {
    await writeUnit(host, 'cut', 'watch', 'cut', twentySeconds)
    await host.output(['systemctl', 'start', 'cut'])
    await atLeast(host, 'cut', 5)
    await host.reboot()
    const gone = { kind: 'gone', reason: 'rebooted' }
    // The process that used the run reported it during the shutdown, and is not started again.
    expect(await endOf(host, 'cut')).toEqual(gone)
    // Another process reports the same, and a run that had ended has its exit code.
    expect(await find(host, 'cut')).toMatchObject({ end: gone })
    expect(await find(host, 'long')).toMatchObject({ end: { kind: 'exited', exitCode: 7 } })
    const lines = await seenLines(host, 'cut')
    expect(lines.length).toBeLessThan(40)
    expect(lines).toEqual(numbered(lines.length))
  })
})
