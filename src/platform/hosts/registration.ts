import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { EdgeHostRegistration } from '../schemas/edge-hosts.ts'
import type { HostRecord, HostStore } from './host-store.ts'
import { parseHostKey } from './login-proof.ts'
import type { RegistrationTokens } from './registration-tokens.ts'
import type { TokenStore } from './token-store.ts'

export interface RegistrationOptions {
  readonly hosts: HostStore
  readonly tokens: Pick<RegistrationTokens, 'findUsable'>
  readonly tokenStore: Pick<TokenStore, 'countHost'>
  readonly transaction: <T>(work: () => T) => T
  readonly clock: Clock
}

/** The registration of hosts with their keys. */
export interface Registration {
  /**
   * Registers a host. It may be done again: the same host with the same key gets the record that is there, whatever has become of the
   * token, since it proves nothing that the record does not show.
   * @throws AppError RegistrationTokenRefused, HostAlreadyRegistered, HostNameExists, LimitReached, BadRequest
   */
  register(registration: EdgeHostRegistration): HostRecord
  /**
   * The same checks with the same errors, and nothing is written.
   * @returns the record that is there, or the one that would be made, which has an empty uid
   */
  tryOut(registration: EdgeHostRegistration): HostRecord
}

export function createRegistration(options: RegistrationOptions): Registration {
  const { hosts, tokens, tokenStore, transaction, clock } = options

  /** @returns the record, and the uid of the token where it is a new one */
  function plan({ metadata, spec }: EdgeHostRegistration): { host: HostRecord; tokenUid?: string } {
    const { host, device = {}, service = {} } = spec
    const { publicKey } = host.hostIdentity
    if (!parseHostKey(publicKey))
      throw refusedField('spec.host.hostIdentity.publicKey', 'is no Ed25519 key of 32 bytes, as base64url')
    const known = hosts.findByHostUid(host.hostUid)
    if (known?.publicKey === publicKey) return { host: known }
    const token = tokens.findUsable(host.hostAuthToken)
    if (!token)
      throw new AppError(
        platformErrors.RegistrationTokenRefused,
        'the registration token is unknown, expired, switched off or used up; ask an administrator of the platform for another one',
      )
    if (known)
      throw new AppError(
        platformErrors.HostAlreadyRegistered,
        // Its name is for those of its project.
        `${host.hostUid} is registered with another key; an administrator of the platform has to delete ${known.projectUid === token.projectUid ? known.name : 'its record'} first`,
      )
    if (hosts.hasName(token.projectUid, metadata.name))
      throw new AppError(
        platformErrors.HostNameExists,
        `there is a host named ${metadata.name} in this project`,
        { details: { field: 'metadata.name' } },
      )
    hosts.counts.requireRoom(token.projectUid)
    const now = clock.now()
    return {
      tokenUid: token.uid,
      host: {
        ...{ uid: '', projectUid: token.projectUid, hostUid: host.hostUid, name: metadata.name },
        ...{ labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {}, publicKey },
        reported: {
          ...{ device, service, hostAddress: host.hostAddress },
          ...{ macAddress: host.macAddress, hostChecksum: host.hostChecksum },
        },
        ...{ last: 0, isUsed: false, isTwice: false, isNextAccepted: false },
        ...{ createdAt: now, modifiedAt: now },
      },
    }
  }

  return {
    tryOut: (registration) => plan(registration).host,
    register: (registration) =>
      transaction(() => {
        const { host, tokenUid } = plan(registration)
        if (tokenUid === undefined) return host
        const made = { ...host, uid: uuidAt(host.createdAt) }
        hosts.put(made)
        tokenStore.countHost(tokenUid)
        return made
      }),
  }
}
