import { describe, expect, it } from 'vitest'
import { adviseOnStart, seeDisk } from '../../../src/errors/advice.ts'

const failure = (fields: object) => Object.assign(new Error('it broke'), fields)
const adviceOn = (fields: object) => adviseOnStart(failure(fields), '/var/lib/edgehostd')?.message

describe('the advice on a failed start', () => {
  it.each([
    [{ code: 'ENOSPC' }, seeDisk],
    [{ code: 'EROFS', path: '/var/lib/edgehostd/secret' }, seeDisk],
    // SQLITE_READONLY_DBMOVED, SQLITE_IOERR_WRITE, SQLITE_FULL
    [{ code: 'ERR_SQLITE_ERROR', errcode: 1032 }, seeDisk],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 778 }, seeDisk],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 13 }, seeDisk],
    [{ code: 'EACCES', path: '/srv/state' }, /systemctl start edgehostd, .* namei -l \/srv\/state$/],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 14 }, /namei -l \/var\/lib\/edgehostd$/],
    [{ code: 'ELOOP', path: '/srv/state/secret' }, /ls -ld \/srv\/state\/secret, and move it away$/],
    [
      { code: 'EEXIST', path: '/srv/state/definitions' },
      /ls -ld \/srv\/state\/definitions, and move it away$/,
    ],
    [{ code: 'ENOENT', path: '/no/where' }, /namei -l \/no\/where$/],
    [{ code: 'ERR_SQLITE_ERROR', errcode: 5 }, /fuser -v \/var\/lib\/edgehostd\/edgehostd\.db$/],
  ])('the advice after %j is one line with a command', (fields, advice) => {
    const message = adviceOn(fields)
    expect(message).toMatch(advice)
    expect(message).toMatch(/^the daemon could not start, it broke: [^\n]+$/)
  })

  it('there is no advice for a mistake of our own', () => {
    expect(adviceOn({})).toBeUndefined()
    expect(adviseOnStart(new TypeError('x is not a function'), '/var/lib/edgehostd')).toBeUndefined()
  })
})
