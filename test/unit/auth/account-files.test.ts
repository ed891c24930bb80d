import { describe, expect, it } from 'vitest'
import {
  findPasswd,
  findShadow,
  gidsOf,
  groupsOf,
  isLocalOnly,
  isLockedHash,
  parsePasswdLine,
  parseShells,
} from '../../../src/auth/accounts.ts'

const passwd = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bobby:x:1002:1002:Bobby,,,:/home/bobby:/bin/bash
bob:x:1001:1001:Bob:/home/bob:
a.b:x:1003:1003::/home/ab:/bin/sh
+nisuser::::::
+::::::
-gone::::::
broken:x:abc:1::/:/bin/sh
short:x:1
`
const shadow = `root:*:19000:0:99999:7:::
bobby:!$y$j9T$abc$def:20000:0:99999:7:::
bob:$y$j9T$ghi$jkl:20000:0:99999:7::20500:
blank::20000:0:99999:7:::
short:$y$x
`
const group = `root:x:0:
sudo:x:27:alice,bob
wheel:!:10:bobby
bob:x:1001:
staff:x:50:bobby,bobb,xbob
+:::
nogid
`

describe('findPasswd', () => {
  it.each([
    ['the first line', 'root', { name: 'root', uid: 0, gid: 0, shell: '/bin/bash' }],
    ['a name that begins another one', 'bob', { name: 'bob', uid: 1001, gid: 1001, shell: '/bin/sh' }],
    ['a name that another one begins', 'bobby', { name: 'bobby', uid: 1002, gid: 1002, shell: '/bin/bash' }],
    ['a name with a dot', 'a.b', { name: 'a.b', uid: 1003, gid: 1003, shell: '/bin/sh' }],
  ])('findPasswd finds %s', (_what, name, entry) => expect(findPasswd(passwd, name)).toEqual(entry))

  it.each([
    ['an unknown name', 'carol'],
    ['a name in other case', 'Bob'],
    ['the beginning of a name', 'bo'],
    ['the end of a name', 'obby'],
    ['a pattern', 'a?b'],
    ['a regular expression', '.*'],
    ['nothing', ''],
    ['a NIS line', '+nisuser'],
    ['the NIS wildcard', '+'],
    ['a NIS exclusion', '-gone'],
    ['a line whose uid is no number', 'broken'],
    ['a line that is cut off', 'short'],
    ['a uid', '0'],
    ['a comment field', 'Bob'],
  ])('findPasswd finds nothing for %s', (_what, name) => expect(findPasswd(passwd, name)).toBeUndefined())

  // A name is the whole first field; the names `root:x` and `root:x:0` are prefixes of a line.
  it.each(['root:x', 'root:x:0', 'bob:x:1001:1001'])(
    'findPasswd finds nothing for %s, which reaches into the next field',
    (name) => expect(findPasswd(passwd, name)).toBeUndefined(),
  )

  it('findPasswd finds an entry in text without a newline at its end', () => {
    expect(findPasswd('x:x:7:8::/:/bin/sh', 'x')?.uid).toBe(7)
  })

  it('findPasswd finds nothing in an empty file', () => expect(findPasswd('', 'root')).toBeUndefined())
})

describe('parsePasswdLine', () => {
  it('parsePasswdLine parses what getent prints for a directory account, and keeps spaces and case', () => {
    expect(parsePasswdLine('Alice Smith@corp:*:70001:70000::/home/alice:/bin/bash\n')).toMatchObject({
      name: 'Alice Smith@corp',
      uid: 70001,
    })
  })
  it.each([[''], [':x:0:0::/:/bin/sh'], ['x:x:-1:0::/:'], ['x:x:0x0:0::/:'], ['x:x::0::/:']])(
    'parsePasswdLine refuses %j',
    (line) => expect(parsePasswdLine(line)).toBeUndefined(),
  )
  it('parsePasswdLine cuts the newline of getent off the shell', () => {
    expect(parsePasswdLine('a:x:1:1::/:/bin/bash\n')?.shell).toBe('/bin/bash')
  })
})

describe('findShadow', () => {
  it.each([
    ['a locked account', 'bobby', '!$y$j9T$abc$def', undefined],
    ['an account with an expiry day', 'bob', '$y$j9T$ghi$jkl', 20500],
    ['an account without a password', 'blank', '', undefined],
    ['a line that is cut off', 'short', '$y$x', undefined],
  ])('findShadow parses %s', (_what, name, hash, expireDay) => {
    expect(findShadow(shadow, name)).toEqual({ hash, expireDay })
  })
  it('findShadow parses day 0, which chage -E 0 sets', () => {
    expect(findShadow('x:h:1:0:99999:7::0:\n', 'x')?.expireDay).toBe(0)
  })
  it.each([
    ['the last day of a password not changed for its 90 and 10 days', '20000:0:90:7:10:', 20_101],
    ['the earlier of this and an expiry day', '20000:0:90:7:10:20050', 20_050],
    ['no day where inactivity is not counted', '20000:0:90:7::', undefined],
    ['no day where it is switched off', '20000:0:90:7:-1:', undefined],
    ['no day for a password that is to be changed first', '0:0:90:7:10:', undefined],
  ])('findShadow computes %s', (_what, fields, expireDay) => {
    expect(findShadow(`x:h:${fields}:\n`, 'x')?.expireDay).toBe(expireDay)
  })
  it('findShadow finds nothing for the beginning of a name', () =>
    expect(findShadow(shadow, 'bo')).toBeUndefined())
})

describe('isLockedHash', () => {
  it.each([['!'], ['!!'], ['!*'], ['!$y$j9T$abc$def']])('the hash %j is locked', (hash) =>
    expect(isLockedHash(hash)).toBe(true),
  )
  it.each([['$y$j9T$abc$def'], ['x'], ['']])('the hash %j is not locked', (hash) =>
    expect(isLockedHash(hash)).toBe(false),
  )
})

describe('groupsOf', () => {
  it('groupsOf lists memberships and the primary group', () => {
    expect(groupsOf(group, 'bob', 1001)).toEqual(['sudo', 'bob'])
  })
  it('groupsOf compares whole member names', () => {
    expect(groupsOf(group, 'bobby', 1002)).toEqual(['wheel', 'staff'])
    expect(groupsOf(group, 'bo', 9)).toEqual([])
    expect(groupsOf(group, '', 9)).not.toContain('sudo')
    expect(groupsOf(group, 'alice,bob', 9)).toEqual([])
  })
})

describe('gidsOf', () => {
  it('gidsOf returns the ids of the named groups only', () => {
    expect(gidsOf(group, ['sudo', 'wheel', 'absent'])).toEqual([27, 10])
  })
  it('gidsOf returns no id for a NIS line or an incomplete line', () => {
    expect(gidsOf(group, ['+', 'nogid'])).toEqual([])
  })
})

describe('isLocalOnly', () => {
  it.each([
    ['passwd: files', true],
    ['passwd:         files systemd', true],
    ['passwd: files [NOTFOUND=return] sss', false],
    ['passwd: files # sss', true],
    ['# passwd: sss\npasswd: files', true],
    ['passwd: sss files', false],
    ['passwd: files ldap', false],
    ['passwd: files winbind', false],
    ['group: sss', true],
    ['', true],
  ])('isLocalOnly of %j is %s', (text, expected) => expect(isLocalOnly(text, 'passwd')).toBe(expected))

  it('isLocalOnly does not mistake passwd_compat for passwd', () => {
    expect(isLocalOnly('passwd_compat: nis\npasswd: files', 'passwd')).toBe(true)
  })
})

describe('parseShells', () => {
  it('parseShells leaves out comments and what is not a path', () => {
    expect(parseShells('# /etc/shells\n/bin/sh\n /bin/bash # default\nzsh\n\n')).toEqual([
      '/bin/sh',
      '/bin/bash',
    ])
  })
  it('parseShells returns the list of getusershell(3) when the file is missing', () => {
    expect(parseShells(undefined)).toEqual(['/bin/sh', '/bin/csh'])
  })
})
