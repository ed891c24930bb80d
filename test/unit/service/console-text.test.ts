import { describe, expect, it } from 'vitest'
import { consoleLineOf } from '../../../src/network/trial/room.ts'
import { consoleText } from '../../../src/service/console.ts'

const fingerprint = 'AB:CD:EF'
const addresses = ['192.0.2.10', '198.51.100.7', '2001:db8::10']
const first = (address: string, known: readonly string[] = addresses, port = 5080) =>
  consoleText({ bound: { address, port }, addresses: known, fingerprint }).split('\n')[0]

describe('the greeting', () => {
  it('the console text is two lines, the addresses and the fingerprint', () => {
    expect(
      consoleText({ bound: { address: '::', port: 5080 }, addresses: ['192.0.2.10'], fingerprint }),
    ).toBe('edgehostd  https://192.0.2.10:5080\nSHA-256    AB:CD:EF\n')
  })

  it('a change of the network that is tried is on the console with its deadline and how to keep it', () => {
    const change = { uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44', deadlineAt: Date.UTC(2026, 0, 31, 9, 31) }
    const network = consoleLineOf([{ ...change, state: 'trial' }])
    const bound = { address: '::', port: 5080 }
    expect(consoleText({ bound, addresses: ['192.0.2.10'], fingerprint, network })).toBe(
      'edgehostd  https://192.0.2.10:5080\nSHA-256    AB:CD:EF\n' +
        'Network    a change is taken back at 2026-01-31T09:31:00.000Z unless as root:\n' +
        '           edgehostctl network confirm 0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44\n',
    )
    for (const state of ['confirming', 'confirmed', 'reverting', 'reverted', 'revertFailed'] as const)
      expect(consoleLineOf([{ ...change, state }])).toBeUndefined()
    expect(consoleLineOf([])).toBeUndefined()
  })

  it.each([
    ['::', 'https://192.0.2.10:5080 https://198.51.100.7:5080 https://[2001:db8::10]:5080'],
    ['0.0.0.0', 'https://192.0.2.10:5080 https://198.51.100.7:5080'],
    ['198.51.100.7', 'https://198.51.100.7:5080'],
    ['2001:db8::10', 'https://[2001:db8::10]:5080'],
  ])('the console text of a daemon that listens on %s names %s', (address, urls) => {
    expect(first(address)).toBe(`edgehostd  ${urls}`)
  })

  it('the console text names at most four addresses, IPv4 first', () => {
    const many = ['2001:db8::1', '2001:db8::2', '192.0.2.1', '192.0.2.2', '192.0.2.3']
    expect(first('::', many, 8443)).toBe(
      'edgehostd  https://192.0.2.1:8443 https://192.0.2.2:8443 https://192.0.2.3:8443 https://[2001:db8::1]:8443',
    )
  })

  it('the console text says that the host has no address yet', () => {
    expect(first('::', [])).toBe('edgehostd  no network address yet, port 5080')
  })
})
