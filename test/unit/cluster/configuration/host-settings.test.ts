import { describe, expect, it } from 'vitest'
import { readHostSettings } from '../../../../src/cluster/desired/host-settings.ts'
import { problemOfKey } from '../../../../src/host/public-key.ts'
import { refusalOf } from '../../../support/refusal-of.ts'
import { publicKeys } from '../../../support/ssh-keys.ts'

const { ed25519, rsa } = publicKeys
const [, data = ''] = ed25519.split(' ')

describe('NTP servers', () => {
  it('names and addresses are taken, without blanks around them, empty entries and repetitions', () => {
    const servers = [
      'time.example',
      ' 192.0.2.1 ',
      '',
      '2001:db8::1',
      '0.pool.time.example',
      'time.example',
      'gps-1',
    ]
    expect(readHostSettings({ ntpServers: servers }, '').ntpServers).toEqual([
      ...['time.example', '192.0.2.1', '2001:db8::1', '0.pool.time.example', 'gps-1'],
    ])
    expect(readHostSettings({}, '')).toEqual({ ntpServers: [], sshKeys: [] })
  })

  it.each([
    ['two in one entry', 'a.example b.example'],
    ['a second line', 'a.example\nFallbackNTP=b.example'],
    ['an option of chrony', 'a.example\tnoselect'],
    ['a control character', 'a\u0000b'],
    ['an address with a zone', 'fe80::1%eth0'],
    ['a URL', 'ntp://a.example'],
    ['a label that begins with a hyphen', '-a.example'],
    ['a name that ends with a dot', 'a.example.'],
    ['an address with a part too much', '192.0.2.1.5'],
    ['a part of an address that is too large', '192.0.2.256'],
    ['a comment', 'a.example#'],
    ['a long name', `${'a'.repeat(60)}.`.repeat(5) + 'example'],
    ['a long label', `${'a'.repeat(64)}.example`],
  ])('%s is refused with its place', (_what, server) => {
    const refusal = refusalOf(() => readHostSettings({ ntpServers: ['ok.example', server] }, 'spec.'))
    expect(refusal).toMatchObject({ code: 'BadRequest', details: { field: 'spec.ntpServers[1]' } })
    expect(refusal.message).toMatch(/^spec\.ntpServers\[1\] /)
  })

  it('more than 32 are refused', () => {
    const ntpServers = Array.from({ length: 33 }, (_, index) => `t${index}.example`)
    expect(refusalOf(() => readHostSettings({ ntpServers }, ''))).toMatchObject({
      details: { field: 'ntpServers' },
    })
  })
})

describe('SSH keys', () => {
  it.each(Object.values(publicKeys))('a key that ssh-keygen made is taken: %s', (key) => {
    expect(problemOfKey(key)).toBeUndefined()
    expect(readHostSettings({ sshKeys: [`${key}\n`, key] }, '').sshKeys).toEqual([key])
  })

  it('a comment may be absent, and may have spaces', () => {
    expect(problemOfKey(`ssh-ed25519 ${data}`)).toBeUndefined()
    expect(problemOfKey(`ssh-ed25519 ${data} of the night shift, hall 3`)).toBeUndefined()
  })

  it.each([
    ['a command', `command="/bin/sh" ${ed25519}`, 'options'],
    ['a source', `from="192.0.2.0/24",no-pty ${ed25519}`, 'options'],
    ['a mark of an authority', `cert-authority ${ed25519}`, 'options'],
    ['two keys in one entry', `${ed25519}\n${rsa}`, 'several lines'],
    ['a carriage return', `${ed25519}\rcommand`, 'several lines'],
    ['a control character', `${ed25519}\u0000`, 'control character'],
    ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----', 'no public key'],
    ['a word', 'ssh-key', 'no public key'],
    ['an algorithm that sshd does not take', `ssh-dss ${data}`, 'no public key'],
    ['a name of an object', `constructor ${data}`, 'no public key'],
    ['an algorithm without data', 'ssh-ed25519', 'base64'],
    ['data of other characters', 'ssh-ed25519 AAAA$(id)', 'base64'],
    ['a key that was cut off', `ssh-ed25519 ${data.slice(0, -8)}`, 'damaged'],
    ['data with a tail', `ssh-ed25519 ${data}AAAA`, 'damaged'],
    ['data of another algorithm', `ssh-rsa ${data}`, 'damaged'],
  ])('%s is refused with the place and the reason', (_what, key, reason) => {
    expect(problemOfKey(key)).toContain(reason)
    expect(refusalOf(() => readHostSettings({ sshKeys: [ed25519, key] }, ''))).toMatchObject({
      ...{ code: 'BadRequest', details: { field: 'sshKeys[1]' } },
    })
  })

  it('a key of RSA that sshd refuses is refused', () => {
    const text = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes])
    const made = (bits: number) => {
      const modulus = Buffer.alloc(bits / 8 + 1, 0xff)
      modulus[0] = 0
      const parts = [Buffer.from('ssh-rsa'), Buffer.from([1, 0, 1]), modulus].map(text)
      return `ssh-rsa ${Buffer.concat(parts).toString('base64')}`
    }
    expect(problemOfKey(made(768))).toContain('1024 bits')
    expect(problemOfKey(made(1_024))).toBeUndefined()
  })
})
