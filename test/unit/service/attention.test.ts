import { describe, expect, it } from 'vitest'
import { attentionOfService, createAttention } from '../../../src/service/attention.ts'
import { captureLog } from '../../support/https-server.ts'
import { serviceStatus } from '../../support/test-edge.ts'

const now = Date.parse('2026-01-31T09:30:00Z')
const status = serviceStatus('airgap')
const place = { stateDirectory: '/var/lib/edgehostd', now }
const { certificate } = status
const ending = { ...certificate, expirationTimestamp: '2026-02-10T00:00:00Z' }
const ended = { ...certificate, expirationTimestamp: '2026-01-10T00:00:00Z' }

describe('what the daemon needs of an operator', () => {
  it('a healthy daemon needs nothing', () => {
    expect(attentionOfService(status, place)).toEqual([])
  })

  it.each<[string, Partial<typeof status>, string, string, RegExp]>([
    [
      'a daemon that is not ready',
      { failing: ['database'] },
      'NotReady',
      'error',
      /^journalctl -u edgehostd -p warning/,
    ],
    [
      'a check that an operator has to answer',
      { notes: ['audit trail complete'] },
      'CheckFails',
      'warning',
      /^journalctl .* warning$/,
    ],
    [
      'a full disk',
      { state: { freeBytes: 9, totalBytes: 100 } },
      'StateDiskFull',
      'error',
      /^df -h \/var\/lib\/edgehostd$/,
    ],
    [
      'audits that are only in the journal',
      { unwrittenAudits: 2 },
      'AuditsUnwritten',
      'warning',
      /audit verify$/,
    ],
    [
      'an own certificate near its end',
      { certificate: { ...ending, isOwn: true } },
      'CertificateEnding',
      'warning',
      /^journalctl .* certificate$/,
    ],
    [
      "an administrator's certificate near its end",
      { certificate: { ...ending, isOwn: false } },
      'CertificateEnding',
      'warning',
      /^systemctl reload edgehostd$/,
    ],
    [
      'a certificate that has ended',
      { certificate: { ...ended, isOwn: false } },
      'CertificateEnding',
      'error',
      /^systemctl reload edgehostd$/,
    ],
  ])('%s has a code, a severity and the next command', (_, found, code, severity, command) => {
    const items = attentionOfService({ ...status, ...found }, place)
    expect(items).toEqual([{ code, severity, message: expect.any(String), command: expect.any(String) }])
    expect(items[0]?.command).toMatch(command)
  })

  it('a tenth of the disk that is free is enough', () => {
    expect(attentionOfService({ ...status, state: { freeBytes: 10, totalBytes: 100 } }, place)).toEqual([])
  })
})

describe('the attention of all rooms', () => {
  const item = (code: string, severity: 'error' | 'warning' | 'info') => ({ code, severity, message: code })

  it('items of all rooms are in one list, the most urgent first, with times of RFC 3339', async () => {
    const { log } = captureLog()
    const read = createAttention({
      ...{ stateDirectory: '/', clock: { now: () => now }, log },
      status: async () => ({ ...status, notes: ['a check'] }),
      sources: [
        () => [item('Waits', 'info'), { ...item('Broken', 'error'), since: now }],
        async () => [{ ...item('Lacking', 'warning'), object: { kind: 'fact', name: 'disks' } }],
      ],
    })
    const { items } = await read()
    expect(items.map(({ code }) => code)).toEqual(['Broken', 'CheckFails', 'Lacking', 'Waits'])
    expect(items[0]).toEqual({ ...item('Broken', 'error'), sinceTimestamp: '2026-01-31T09:30:00.000Z' })
    expect(items[2]?.object).toEqual({ kind: 'fact', name: 'disks' })
  })

  it('a room that cannot say it does not hide the others, and the list says that it is not whole', async () => {
    const { log, texts } = captureLog()
    const read = createAttention({
      ...{ stateDirectory: '/', clock: { now: () => now }, log, status: async () => status },
      sources: [() => Promise.reject(new Error('no such table')), () => [item('Waits', 'info')]],
    })
    expect((await read()).items.map(({ code }) => code)).toEqual(['AttentionUnknown', 'Waits'])
    expect(texts().join()).toContain('could not say what it needs')
  })
})
