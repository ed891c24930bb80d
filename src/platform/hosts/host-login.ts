import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { CallerChanges } from '../caller-changes.ts'
import { judgeGeneration } from './generations.ts'
import type { HostRecord, HostStore } from './host-store.ts'
import { parseHostKey, readLoginProof } from './login-proof.ts'
import type { Nonces } from './nonces.ts'

export interface HostLoginOptions {
  readonly hosts: HostStore
  readonly nonces: Nonces
  /** Makes a token for a host and the generation of its login. */
  readonly makeToken: (hostUid: string, generation: number) => string
  readonly transaction: <T>(work: () => T) => T
  readonly changes: Pick<CallerChanges, 'gone'>
  readonly clock: Clock
}

export interface HostLogin {
  /**
   * The first half: a nonce for the host to sign, and nothing else. Every uid gets one, so that uids cannot be probed.
   */
  challenge(uid: string): AppError
  /**
   * The second half. The new generation is on the disk when it returns.
   * @throws AppError LoginChallenge for a nonce that is too old or was used, LoginRefused, HostRemoved, HostExistsTwice
   */
  logIn(
    uid: string,
    proof: string,
  ): { readonly token: string; readonly generation: number; readonly host: HostRecord }
}

export function createHostLogin(options: HostLoginOptions): HostLogin {
  const { hosts, nonces, makeToken, transaction, changes, clock } = options

  const challenge = (uid: string) =>
    new AppError(platformErrors.LoginChallenge, 'sign this nonce with the key of the host', {
      details: { nonce: nonces.make(uid) },
    })

  const refused = () =>
    new AppError(
      platformErrors.LoginRefused,
      'the login of this host was refused: the platform knows no such host with this key',
    )

  const twice = (name: string) =>
    new AppError(
      platformErrors.HostExistsTwice,
      `${name} exists twice: its disk was copied, or put back from a backup; an administrator of the platform has to choose`,
    )

  return {
    challenge,
    logIn(uid, proof) {
      const host = hosts.find(uid)
      const keyText = host?.publicKey ?? hosts.removedKey(uid)
      const key = keyText === undefined ? undefined : parseHostKey(keyText)
      const claims = key && readLoginProof(proof, key)
      if (claims?.sub !== uid) throw refused()
      if (!nonces.take(claims.nonce, uid)) throw challenge(uid)
      const outcome = transaction(() => {
        const current = hosts.find(uid)
        if (!current) return 'removed'
        const verdict = judgeGeneration(current, claims.gen)
        const changed = verdict === 'twice' ? { isTwice: true } : { last: verdict.next, isUsed: false }
        const next: HostRecord = {
          ...current,
          ...changed,
          ...(verdict !== 'twice' && current.isNextAccepted ? { isTwice: false, isNextAccepted: false } : {}),
        }
        hosts.put({ ...next, modifiedAt: clock.now() })
        return verdict === 'twice' ? 'twice' : next
      })
      if (outcome === 'removed')
        throw new AppError(
          platformErrors.HostRemoved,
          'this host was removed from the platform; to connect it again, register it with a new token',
        )
      if (outcome === 'twice') {
        changes.gone((caller) => caller.uid === uid)
        throw twice(host?.name ?? uid)
      }
      return { token: makeToken(uid, outcome.last), generation: outcome.last, host: outcome }
    },
  }
}
