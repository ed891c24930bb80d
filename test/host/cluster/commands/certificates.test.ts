import { afterAll, describe, expect, it } from 'vitest'
import { stream } from '../../../support/changing-host.ts'
import { beginStream, eventOf, json, streamOf } from '../../../support/played-cluster.ts'
import { createPlayedCtl, type Answers } from '../../../support/played-ctl.ts'

const cluster = '/v1/edge-mgmt/cluster'
const uid = '3f2c5e2e-93a4-4c43-8f0e-000000000001'

const world = createPlayedCtl()
const { run } = world
afterAll(() => world.stop())

describe('cluster certificates', () => {
  const path = `${cluster}/certificates`
  const details = (more: object = {}) => ({
    ...{ needsRenewal: false, problems: [], earliestAutoRenewalTime: '2027-01-01T09:00:00.000Z' },
    certificates: [
      {
        ...{ name: 'ca', issueDate: '2026-01-31T09:00:00.000Z', expirationDate: '2036-01-29T09:00:00.000Z' },
        childCerts: [
          {
            ...{ name: 'apiserver', nodeName: 'edge-1', issueDate: '2026-01-31T09:00:00.000Z' },
            expirationDate: '2027-01-31T09:00:00.000Z',
          },
        ],
      },
    ],
    ...more,
  })
  const accepted = { uid, message: 'the certificates are being renewed' }
  const renewal = { uid, by: 'ada', creationTimestamp: '2026-01-31T08:00:05.000Z' }
  /** A host that renews: its events, and what becomes of the renewal after its last one. */
  function renewing(end: object, reason: string): Answers {
    let now = {}
    return {
      [`POST ${cluster}/renew-certificates`]: json(201, accepted),
      [`GET ${path}`]: (...args) => json(200, details({ renewal: { ...renewal, ...now } }))(...args),
      [stream]: (_request, response) => {
        const requested = eventOf(5, 'RenewalRequested', 'ada asked for a renewal')
        const started = eventOf(6, 'StepStarted', 'Renew', 'certificates-renew')
        beginStream(response).write(streamOf(eventOf(1, 'RenewalRequested', 'long ago'), requested, started))
        setTimeout(() => {
          response.write(streamOf(eventOf(8, reason, 'the end', 'certificates-renew')))
          // A moment after the event.
          setTimeout(() => (now = end), 100)
        }, 100)
      },
    }
  }

  it('cluster certificates is a table of authorities and what they have signed', async () => {
    const ended = await run({ [`GET ${path}`]: json(200, details()) }, ['certificates'])
    expect(ended).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ended.stdout).toMatch(/Renewal: by itself: 2027-01-01 09:00/)
    expect(ended.stdout).toMatch(
      /^CERTIFICATE +SIGNED BY +NODE +ISSUED +ENDS\nca +- +- +2026-01-31.* 2036-01-29/m,
    )
    expect(ended.stdout).toMatch(/^apiserver +ca +edge-1 +2026-01-31.* 2027-01-31/m)
  })

  it('cluster certificates says what is due, asked for and wrong; -o json is the reply', async () => {
    const reply = details({
      ...{ needsRenewal: true, problems: ['the certificate authority ca ends'] },
      renewal: { ...renewal, reason: 'no space' },
    })
    const ended = await run({ [`GET ${path}`]: json(200, reply) }, ['certificates'])
    expect(ended.stdout).toMatch(/due now; edgehostd does it/)
    expect(ended.stdout).toMatch(/by ada, under way; the last try failed: no space/)
    expect(ended.stdout).toMatch(/Problems: the certificate authority ca ends/)
    const asJson = await run({ [`GET ${path}`]: json(200, reply) }, ['certificates', '-o', 'json'])
    expect(JSON.parse(asJson.stdout)).toEqual(reply)
  })

  it('cluster certificates renew asks for a renewal, and --wait waits for its end', async () => {
    const post = `POST ${cluster}/renew-certificates`
    const plain = await run({ [post]: json(201, accepted) }, ['certificates', 'renew'])
    expect(plain).toMatchObject({ exitCode: 0, stderr: '' })
    expect(plain.asked.map(({ url }) => url)).toEqual([post])
    const ended = await run(renewing({ endTimestamp: '2026-01-31T10:00:09.000Z' }, 'CertificatesRenewed'), [
      ...['certificates', 'renew', '--wait'],
    ])
    expect(ended).toMatchObject({ exitCode: 0, stderr: 'The certificates are renewed.\n' })
    expect(ended.stdout).toMatch(/RenewalRequested .*\n.*StepStarted .*\n.*CertificatesRenewed +the end\n$/)
    expect(ended.stdout).not.toContain('long ago')
    const asJson = await run(renewing({ endTimestamp: '2026-01-31T10:00:09.000Z' }, 'CertificatesRenewed'), [
      ...['certificates', 'renew', '--wait', '-o', 'json'],
    ])
    const lines = asJson.stdout.trimEnd().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { reason: string }).reason)).toEqual([
      ...['RenewalRequested', 'StepStarted', 'CertificatesRenewed'],
    ])
  })

  it('cluster certificates renew --wait ends with 1 and the reason when a try has failed', async () => {
    const ended = await run(renewing({ reason: 'no space' }, 'StepFailed'), [
      ...['certificates', 'renew', '--wait'],
    ])
    expect(ended.exitCode).toBe(1)
    expect(ended.stderr).toMatch(/^edgehostctl: no space; edgehostd tries again/)
  })

  it.each([
    [['certificates', 'remove'], /"remove": the only word here is renew/],
    [['certificates', '--wait'], /--wait is for cluster certificates renew/],
  ])('%j is refused before the host is asked', async (args, why) => {
    const ended = await run({}, args)
    expect(ended).toMatchObject({ exitCode: 2, asked: [] })
    expect(ended.stderr).toMatch(why)
  })
})
