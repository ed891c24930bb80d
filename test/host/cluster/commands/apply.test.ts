import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, describe, expect, it } from 'vitest'
import {
  applying,
  clusterPath,
  createChangingHost,
  diff,
  host,
  next,
  noContent,
  revisionOf,
  stream,
  tried,
  write,
} from '../../../support/changing-host.ts'
import { beginStream, eventOf, json, streamOf } from '../../../support/played-cluster.ts'

const world = createChangingHost()
const { ctl, play, asked, writes, run, runOnTerminal } = world
afterAll(() => world.stop())

describe('cluster apply', () => {
  it('--yes shows what differs, sends what was shown, and follows it until it is good', async () => {
    const ended = await run(applying('good', 'Updated'), ['apply', '--yes'])
    expect(ended.exitCode).toBe(0)
    expect(ended.stdout).toMatch(/^web +1\.0\.0 -> 1\.1\.0/m)
    expect(ended.stdout).not.toContain('ran long ago')
    expect(ended.stdout).toMatch(/UpdateAccepted .*\n.*UpdateStarted .*\n.*Updated +the end\n$/)
    expect(ended.stderr).toBe('Revision 2 is good.\n')
    const [put, ...others] = writes()
    expect(others).toEqual([])
    expect(put?.headers['if-match']).toBe('"one"')
    expect(JSON.parse(put?.body ?? '')).toEqual({ spec: { archiveUploadPath: next, scheduleAt: '' } })
  })

  it('a change that was taken back ends with 1 and its reason', async () => {
    const ended = await run(applying('rolledBack', 'RolledBack', { reason: 'web is not available' }), [
      'apply',
      '--yes',
    ])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toBe(
      'edgehostctl: revision 2 failed, and revision 1 runs again: web is not available\n',
    )
  })

  it('a way back that failed too ends with 1 and what to do', async () => {
    const ended = await run(applying('failed', 'RollbackFailed'), ['apply', '--yes'])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(/revision 2 failed, and the way back too: the end/)
  })

  it('-o json writes the events, one a line', async () => {
    const ended = await run(applying('good', 'Updated'), ['apply', '--yes', '-o', 'json'])
    const lines = ended.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { reason: string })
    expect(lines.map(({ reason }) => reason)).toEqual(['UpdateAccepted', 'UpdateStarted', 'Updated'])
  })

  it('asks on a terminal, and sends nothing without a yes', async () => {
    const no = await runOnTerminal(applying('good', 'Updated'), ['apply'], 'n\n')
    expect(no.exitCode).toBe(1)
    expect(no.stdout).toMatch(
      /web +1\.0\.0 -> 1\.1\.0.*takes it back by itself.*Apply it\? \[y\/N\] .*nothing was applied/s,
    )
    // Nothing is broken within a word.
    expect(no.stdout.replaceAll(/\s+/g, ' ')).toContain('if the cluster does not run with it.')
    expect(writes()).toEqual([])
    const yes = await runOnTerminal(applying('good', 'Updated'), ['apply'], 'y\n')
    expect(yes.exitCode).toBe(0)
    expect(yes.stdout).toMatch(/Updated +the end\n.*Revision 2 is good/s)
  })

  it.each([
    [['apply', '--definition', 'shop.tgz'], 'there is no terminal to confirm the change on'],
    [['apply', '-o', 'json'], '-o json shows nothing that could be asked about'],
    [['rollback'], 'there is no terminal'],
    [['settings', '--none'], 'there is no terminal'],
    [['apply', '--yes', '--schedule-at', 'soon'], '--schedule-at must be a time'],
    [['apply', '--yes', '--schedule-at', '2001-01-01T00:00:00Z'], '--schedule-at must be in the future'],
    [['rollback', 'two', '--yes'], 'REVISION must be the number of a revision'],
    [['settings', '--none', '--ntp', 'a', '--yes'], 'leave out --ntp and --ssh-key'],
    [['settings', '--yes'], '--yes is for a change'],
  ])('%j is refused before the host is asked', async (args, message) => {
    const ended = await run(host(), args)
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toContain(message)
    expect(asked()).toEqual([])
  })

  it('412 says to look again', async () => {
    const changed = json(412, { code: 'PreconditionFailed', message: 'changed' })
    for (const answer of [changed, write(tried, changed)]) {
      const ended = await run(host({ [`PUT ${clusterPath}/profiles`]: answer }), ['apply', '--yes'])
      expect(ended.exitCode).toBe(1)
      expect(ended.stderr).toMatch(/changed meanwhile.*look again: edgehostctl cluster diff/)
    }
  })

  it('problems that only the write finds are listed', async () => {
    const problems = [{ code: 'ImageMissing', severity: 'error', message: 'no image', pack: 'p1/web' }]
    const refusal = json(400, {
      code: 'PreflightFailed',
      message: '1 error was found',
      details: { problems },
    })
    const ended = await run(host({ [`PUT ${clusterPath}/profiles`]: write(tried, refusal) }), [
      'apply',
      '--yes',
    ])
    expect(ended.exitCode).toBe(1)
    expect(ended.stdout).toMatch(/^error +ImageMissing +web +no image$/m)
    expect(ended.stderr).toMatch(/1 error was found \(PreflightFailed\)/)
  })

  it.each([
    ['what is not possible', { isPossible: false }, 1, '0 errors were found, so nothing was applied'],
    ['what lacks values', { isPossible: false, isHeld: true }, 1, 'give them with --set NAME=VALUE'],
    ['what changes nothing', { isChanged: false }, 0, 'Nothing is to be changed, so nothing was sent.'],
    ['an equal definition', { diff: { ...diff, isEmpty: true } }, 0, 'Nothing is to be changed'],
  ])('%s is not sent', async (_what, more, exitCode, message) => {
    const answers = host({ [`PUT ${clusterPath}/profiles`]: json(200, { ...tried, ...more }) })
    const ended = await run(answers, ['apply', '--yes'])
    expect(ended.exitCode).toBe(exitCode)
    expect(ended.stderr).toContain(message)
    const asJson = await run(answers, ['apply', '--yes', '-o', 'json'])
    expect(JSON.parse(asJson.stdout)).toEqual({ ...tried, ...more })
    expect(writes()).toEqual([])
  })

  it('what runs is sent where another revision waits: that one is cancelled so', async () => {
    const items = [revisionOf(2, 'waiting'), revisionOf(1, 'good')]
    const ended = await run(
      host({
        [`GET ${clusterPath}/revisions`]: json(200, { items }),
        [`PUT ${clusterPath}/profiles`]: write(
          { ...tried, diff: { ...diff, isEmpty: true } },
          noContent('"two"'),
        ),
      }),
      ['apply', '--yes', '--no-wait'],
    )
    expect(ended.stdout).toMatch(/Revision 2, which waits, is part of this; the new revision takes its place/)
    expect(ended.stderr).toMatch(/Revision 3 is accepted/)
  })

  it('--no-wait ends when the change is accepted; -o json says as which revision', async () => {
    const ended = await run(host(), ['apply', '--yes', '--no-wait'])
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stderr).toMatch(/^Revision 2 is accepted; the host applies it: edgehostctl cluster watch\n$/)
    const asJson = await run(host(), ['apply', '--yes', '--no-wait', '-o', 'json'])
    expect(JSON.parse(asJson.stdout)).toMatchObject({ accepted: 2, isChanged: true })
  })

  it('--schedule-at sends the time and does not wait for it', async () => {
    const ended = await run(host(), ['apply', '--yes', '--schedule-at', '2131-05-01T02:00:00+02:00'])
    expect(ended.exitCode).toBe(0)
    expect(ended.stderr).toMatch(
      /Revision 2 is begun at 2131-05-01 00:00:00Z\. To cancel it: edgehostctl cluster rollback 1/,
    )
    expect(JSON.parse(writes()[0]?.body ?? '')).toMatchObject({
      spec: { scheduleAt: '2131-05-01T00:00:00.000Z' },
    })
  })

  it('continues when the daemon is restarted while it watches', async () => {
    const answers = applying('good', 'Updated')
    let tries = 0
    const whole = answers[stream]
    const revisions = answers[`GET ${clusterPath}/revisions`]
    let isAway = 2
    const ended = await run(
      {
        ...answers,
        // Away at first, then cut off.
        [stream]: (request, response, body) => {
          tries += 1
          if (tries === 1) response.destroy()
          else if (tries === 2) {
            beginStream(response).write(streamOf(eventOf(3, 'UpdateAccepted', 'revision 2 of ada')))
            setTimeout(() => response.destroy(), 50)
          } else whole?.(request, response, body)
        },
        [`GET ${clusterPath}/revisions`]: (request, response, body) => {
          if (tries > 2 && isAway > 0) {
            isAway -= 1
            if (isAway === 1) response.destroy()
            else json(503, { code: 'NotReady', message: 'it starts' })(request, response, body)
          } else revisions?.(request, response, body)
        },
      },
      ['apply', '--yes'],
    )
    expect(ended.exitCode, ended.stderr).toBe(0)
    expect(ended.stderr).toMatch(/trying again[^]*Revision 2 is good/)
  })

  it('a reply that did not come leaves it open whether the change was accepted, and says where to look', async () => {
    const ended = await run(
      host({
        [`PUT ${clusterPath}/profiles`]: write(tried, (_request, response) => void response.destroy()),
      }),
      ['apply', '--yes'],
    )
    expect(ended.exitCode).toBe(3)
    expect(ended.stderr).toMatch(/Whether the change was accepted: edgehostctl cluster revisions/)
  })

  it('Ctrl-C leaves the change under way, and says so', async () => {
    const answers = applying('waiting', 'StepProgress')
    const path = await play(answers)
    const program = spawn(process.execPath, [ctl.program, `--socket=${path}`, 'cluster', 'apply', '--yes'])
    let stderr = ''
    program.stderr.on('data', (part: Buffer) => void (stderr += part.toString()))
    let stdout = ''
    program.stdout.on('data', (part: Buffer) => {
      stdout += part.toString()
      if (stdout.includes('StepProgress')) program.kill('SIGINT')
    })
    expect(await once(program, 'exit')).toEqual([130, null])
    expect(stderr).toMatch(/Interrupted\. The host continues with revision 2: edgehostctl cluster watch/)
  })
})
