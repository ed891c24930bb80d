import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { EdgeHostRegistration } from './schemas.ts'
import type { HostRecord, HostStore } from './store.ts'
import { parseHostKey } from './login.ts'
import type { RegistrationTokens, TokenStore } from '../tokens/tokens.ts'
import { nameTaken } from '../names.ts'

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
   * Registers a host. It may be done again: the same host with the same key gets its record, whatever has become of the token. The key is
   * a public one, so without a token of its project it gets no more than the uid and the project.
   * @throws AppError RegistrationTokenRefused, HostAlreadyRegistered, HostNameExists, LimitReached, BadRequest
   */
  register(registration: EdgeHostRegistration): Registered
  /**
   * The same checks with the same errors, and nothing is written.
   * @returns the record that is there, or the one that would be made, which has an empty uid
   */
  tryOut(registration: EdgeHostRegistration): Registered
}

export interface Registered {
  readonly host: HostRecord
  /** Whether the token is one of the project of the host, so that the whole record may be shown. */
  readonly isShown: boolean
}

/** A record that keeps another host from being registered. */
export class RecordInTheWay extends AppError {
  readonly record: Pick<HostRecord, 'uid' | 'name' | 'projectUid'>
  constructor(record: HostRecord, message: string) {
    super(
      platformErrors.HostAlreadyRegistered,
      `${message}; where this host is the right one, an administrator of the platform deletes that record: edgeplatformctl host delete ${record.uid}`,
    )
    this.record = record
  }
}

export function createRegistration(options: RegistrationOptions): Registration {
  const { hosts, tokens, tokenStore, transaction, clock } = options

  /** @returns the record, and the uid of the token where it is a new one */
  function plan({ metadata, spec }: EdgeHostRegistration): Registered & { readonly tokenUid?: string } {
    const { host, device = {}, service = {} } = spec
    const { publicKey } = host.hostIdentity
    if (!parseHostKey(publicKey))
      throw refusedField('spec.host.hostIdentity.publicKey', 'is no Ed25519 key of 32 bytes, as base64url')
    const known = hosts.findByHostUid(host.hostUid)
    const token = tokens.findUsable(host.hostAuthToken)
    if (known?.publicKey === publicKey)
      return { host: known, isShown: token?.projectUid === known.projectUid }
    if (!token)
      throw new AppError(
        platformErrors.RegistrationTokenRefused,
        'the registration token is unknown, expired, switched off or used up; ask an administrator of the platform for another one',
      )
    if (known)
      throw new RecordInTheWay(
        known,
        `${host.hostUid} is registered with another key, in ${placeOf(known, token.projectUid)}`,
      )
    const withKey = hosts.findByKey(publicKey)
    if (withKey)
      throw new RecordInTheWay(
        withKey,
        `another id, in ${placeOf(withKey, token.projectUid)}, has the key of this host; a key belongs to one host`,
      )
    const { name } = metadata
    const taken = hosts.findTaken(token.projectUid, name)
    if (taken !== undefined)
      throw nameTaken(platformErrors.HostNameExists, 'host', { name, taken }, 'in this project')
    hosts.counts.requireRoom(token.projectUid)
    const now = clock.now()
    return {
      tokenUid: token.uid,
      isShown: true,
      host: {
        uid: '',
        projectUid: token.projectUid,
        hostUid: host.hostUid,
        name: metadata.name,
        labels: metadata.labels ?? {},
        annotations: metadata.annotations ?? {},
        publicKey,
        reported: {
          device,
          service,
          hostAddress: host.hostAddress,
          macAddress: host.macAddress,
          hostChecksum: host.hostChecksum,
        },
        last: 0,
        isUsed: false,
        isTwice: false,
        isNextAccepted: false,
        isDescribed: false,
        createdAt: now,
        modifiedAt: now,
      },
    }
  }

  return {
    tryOut: plan,
    register: (registration) =>
      transaction(() => {
        const { host, tokenUid, isShown } = plan(registration)
        if (tokenUid === undefined) return { host, isShown }
        const made = { ...host, uid: uuidAt(host.createdAt) }
        hosts.put(made)
        tokenStore.countHost(tokenUid)
        return { host: made, isShown }
      }),
  }
}

/** Names in a project are shown only within it. */
const placeOf = ({ projectUid, name }: HostRecord, ownProjectUid: string): string =>
  projectUid === ownProjectUid ? `the record ${name} of this project` : 'a record of another project'
