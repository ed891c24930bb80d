import { describe, expect, it } from 'vitest'
import { masked } from '../../../src/base/mask.ts'
import { createMask } from '../../../src/support/sources.ts'

const key = Buffer.from('00ff80c1a5e97f3d00ff80c1a5e97f3d', 'hex')
const pem = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg
bm90IGEgcmVhbCBrZXkgYnV0IGxvbmcgZW5vdWdo
-----END PRIVATE KEY-----
`
const mask = createMask({
  values: [key, Buffer.from(pem), Buffer.from('scrape me 0901\n'), Buffer.from('ab\n')],
  userNames: new Set(['alice', 'ops.team']),
})

describe('what is secret is masked', () => {
  it.each([
    ['a key in base64', `x ${key.toString('base64')} y`],
    ['a key in base64url', `x ${key.toString('base64url')} y`],
    ['a key in hex', `x ${key.toString('hex')} y`],
    ['a token of a file', 'bearer of scrape me 0901 came'],
    ['a line of a private key', 'found bm90IGEgcmVhbCBrZXkgYnV0IGxvbmcgZW5vdWdo in it'],
    [
      'another private key',
      'a\n-----BEGIN RSA PRIVATE KEY-----\nbm90IG91cnM=\n-----END RSA PRIVATE KEY-----\nb',
    ],
    ['a private key that was cut off', '-----BEGIN EC PRIVATE KEY-----\nbm90IG91cnM='],
    ['a session token', 'at eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl done'],
    ['a password in a URL', 'proxy http://ops:hunter2@proxy:3128 is set'],
    ['a password in JSON', '{"username":"alice","password":"hunter2 \\" hunter2"}'],
    ['a password in JSON in JSON', JSON.stringify({ msg: JSON.stringify({ password: 'hunter2 hunter2' }) })],
    ['a password in a message in JSON', JSON.stringify({ msg: 'asked with password=hunter2' })],
    ['a header', 'Authorization: Bearer hunter2.hunter2'],
    ['a header in JSON', JSON.stringify({ authorization: 'Bearer hunter2.hunter2', next: 1 })],
    ['a setting', 'EDGEHOSTD_SOME_PASSWORD=hunter2'],
    ['the value of an option', 'kubeadm join 10.0.0.1:6443 --token hunter2.hunter2 --node-name a'],
    ['a malformed user name of the daemon', '{"msg":"login refused","user":"hunter2 \\" x","address":"::1"}'],
    ['a malformed user name in malformed JSON', '{"user":"hunter2 \\x"}'],
    ['a malformed user name of PAM', 'authentication failure; rhost=::1  user=hunter2 correct horse'],
    ['a malformed user name of PAM, quoted', "access denied for user `hunter2 x' from `::1'"],
  ])('masked: %s', (_, text) => {
    const shown = mask(text)
    expect(shown).not.toBe(text)
    expect(shown).not.toMatch(/hunter2|c2lnbmF0dXJl|bm90IG|scrape me|correct horse|00ff80c1|AP-Awa|AP\+Awa/)
  })

  it.each([
    [{ msg: 'asked with password=hunter2, twice', user: 'hunter2', next: [1] }],
    [{ msg: JSON.stringify({ password: 'hunter2 "x" \\', token: 'hunter2' }), user: 'alice' }],
    [{ Token: { Authorization: 'hunter2.a.b', RefreshToken: 'hunter2' }, secret: ['hunter2'] }],
  ])('masked JSON is still JSON: %j', (value) => {
    const shown = JSON.parse(mask(JSON.stringify(value))) as object
    expect(Object.keys(shown)).toEqual(Object.keys(value))
  })

  it('a secret is masked in each place', () => {
    expect(mask('scrape me 0901, scrape me 0901')).toBe(`${masked}, ${masked}`)
  })
})

describe('what helps is left as it is', () => {
  it.each([
    '{"msg":"login","user":"Alice","address":"192.0.2.7","role":"admin"}',
    'pam_unix(edgehostd:auth): authentication failure; rhost=192.0.2.7  user=ops.team',
    'pam_unix(edgehostd:auth): check pass; user unknown',
    '  tokenFile: /etc/edgehostd/metrics.token # /etc/edgehostd/config.yaml:3',
    '    # password: not set',
    '"token": null, "secrets": 3, token: 15, token=true',
    'edgehostd_logins_total{outcome="refused"} 3',
    'https://192.0.2.7:5080/v1/ping and ab',
    'platform connect --token-file token --fingerprint AB, kubeadm init --skip-token-print --config /x',
    'see --token /run/file, and --password-stdin < file',
    '{"code":"PasswordExpired","message":"the password has expired; set a new one"}',
  ])('not masked: %s', (text) => {
    expect(mask(text)).toBe(text)
  })
})
