import type { Role } from '../../base/role.ts'
import { formatTime } from '../../base/time.ts'
import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { User, UserEntity } from '../schemas/users.ts'
import type { CallerChanges } from '../caller-changes.ts'
import type { PasswordLinks } from './password-links.ts'
import type { UserRecord, UserStore } from './user-store.ts'

export interface UsersOptions {
  readonly store: UserStore
  readonly links: PasswordLinks
  readonly transaction: <T>(work: () => T) => T
  readonly changes: CallerChanges
  readonly clock: Clock
}

/** The users of the tenant, as an administrator sees and changes them. */
export interface Users {
  /** @throws AppError UserExists */
  create(entity: UserEntity): string
  all(): readonly UserRecord[]
  /** @throws AppError NotFound */
  get(uid: string): UserRecord
  /** @throws AppError NotFound, LastAdministrator */
  remove(uid: string): void
  /** Sets the roles for the tenant. @throws AppError NotFound, LastAdministrator */
  setRoles(uid: string, roles: readonly Role[]): void
  /** Hands out a new link to set a password; the password stays until it is used. @throws AppError NotFound */
  renewLink(uid: string): string
}

export function createUsers({ store, links, transaction, changes, clock }: UsersOptions): Users {
  function get(uid: string): UserRecord {
    const found = store.find(uid)
    if (!found) throw new AppError(generalErrors.NotFound, 'there is no user with this uid')
    return found
  }

  function keepAnAdministrator(user: UserRecord): void {
    if (user.roles.includes('admin') && store.otherAdministrators(user.uid) === 0)
      throw new AppError(
        platformErrors.LastAdministrator,
        `${user.email} is the only administrator; make another user an administrator first`,
      )
  }

  return {
    all: store.all,
    get,
    create({ metadata = {}, spec }) {
      const { emailId, firstName = '', lastName = '', roles = [] } = spec
      const now = clock.now()
      const uid = uuidAt(now)
      transaction(() => {
        if (store.findByEmail(emailId))
          throw new AppError(
            platformErrors.UserExists,
            `there is a user with the e-mail address ${emailId}`,
            {
              details: { field: 'spec.emailId' },
            },
          )
        store.create({
          ...{ uid, email: emailId, firstName, lastName, roles, createdAt: now },
          ...{ labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {} },
        })
        links.make(uid)
      })
      return uid
    },
    remove(uid) {
      transaction(() => {
        keepAnAdministrator(get(uid))
        store.remove(uid)
      })
      changes.gone((caller) => caller.uid === uid)
    },
    setRoles(uid, roles) {
      transaction(() => {
        const user = get(uid)
        if (!roles.includes('admin')) keepAnAdministrator(user)
        store.setRoles(uid, roles, clock.now())
      })
      changes.rightsChanged()
    },
    renewLink(uid) {
      get(uid)
      links.make(uid)
      return links.takeUnshown(uid) ?? ''
    },
  }
}

/** A user in the API. @param activationLink for the one reply that shows it */
export const toUser = (user: UserRecord, activationLink?: string): User => ({
  metadata: {
    annotations: user.annotations,
    creationTimestamp: formatTime(user.createdAt),
    labels: user.labels,
    lastModifiedTimestamp: formatTime(user.modifiedAt),
    name: user.email,
    uid: user.uid,
  },
  spec: {
    emailId: user.email,
    firstName: user.firstName,
    lastName: user.lastName,
    roles: [...user.roles],
  },
  status: {
    ...(activationLink === undefined ? {} : { activationLink }),
    isActive: user.password !== '',
    isPasswordResetting: user.resetRequestedAt > 0,
    ...(user.lastSignInAt > 0 ? { lastSignIn: formatTime(user.lastSignInAt) } : {}),
  },
})
