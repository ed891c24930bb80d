import type { Ground } from '../../root/room.ts'
import { changedAnnotations, type CallerChanges, requireUnchanged } from '../requests/changes.ts'
import type { Role } from '../../base/role.ts'
import { uuidAt } from '../../base/uid.ts'
import { formatTime } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { MemoryField } from '../../lists/memory.ts'
import type { ListResource } from '../../lists/resource.ts'
import { platformErrors } from '../codes.ts'
import { requireBelowMost } from '../scope-counts.ts'
import { Project, type ProjectEntity } from './schemas.ts'
import type { ProjectRecord, ProjectStore } from './store.ts'

export interface ProjectsOptions {
  readonly store: ProjectStore
  readonly isUser: (uid: string) => boolean
  /** The role of a user for the tenant. */
  readonly roleOf: (userUid: string) => Role | undefined
  /** The remaining resources of a project, in words. */
  readonly usesOf: (uid: string) => readonly string[]
  readonly changes: Pick<CallerChanges, 'rightsChanged'>
}

/** The caller: a user by its uid, or root on the local socket without one. */
export interface ProjectReader {
  readonly uid?: string | undefined
}

/** The projects of the tenant, as an administrator sees and changes them. */
export interface Projects {
  /** @throws AppError ProjectExists, BadRequest */
  create(entity: ProjectEntity): string
  /** All projects for callers with a role for the tenant; for others those in which they have one. */
  seenBy(caller: ProjectReader): readonly ProjectRecord[]
  /** @throws AppError ProjectNotFound, also for a project that `seenBy` leaves out */
  get(uid: string, caller: ProjectReader): ProjectRecord
  /** Replaces users and labels; annotations that are not named stay. @throws AppError ProjectNotFound, BadRequest */
  update(uid: string, entity: ProjectEntity): void
  /** @throws AppError ProjectNotFound, ProjectInUse */
  remove(uid: string): void
}

/** The same words for a project that does not exist and one in which the caller has no role. */
export const projectNotFound = () =>
  new AppError(platformErrors.ProjectNotFound, 'there is no project with this uid in which you have a role')

/**
 * Refuses a scope that is not there any more. To be called in the transaction that writes a row of it, since its project may have been
 * deleted after the guard has seen it. @throws AppError ProjectNotFound
 */
export type RequireProject = (projectUid: string) => void

/** @returns a function that finds every project, and the tenant, which is an empty uid */
export const createRequireProject =
  ({ has }: Pick<ProjectStore, 'has'>): RequireProject =>
  (projectUid) => {
    if (projectUid !== '' && !has(projectUid)) throw projectNotFound()
  }

export function createProjects(ground: Ground, own: ProjectsOptions): Projects {
  const { database, clock } = ground
  const { transaction } = database
  const { store, isUser, roleOf, usesOf, changes } = own

  const isOfTenant = ({ uid }: ProjectReader) => uid === undefined || roleOf(uid) !== undefined

  function find(uid: string): ProjectRecord {
    const found = store.find(uid)
    if (!found) throw projectNotFound()
    return found
  }

  function checkUsers({ spec }: ProjectEntity): void {
    for (const [index, { userId }] of (spec?.users ?? []).entries())
      if (!isUser(userId)) throw refusedField(`spec.users[${index}].userId`, 'is no user of this platform')
  }

  return {
    seenBy: (caller) => (isOfTenant(caller) ? store.all() : store.allOf(caller.uid ?? '')),
    get(uid, caller) {
      const found = find(uid)
      if (!isOfTenant(caller) && store.rolesOf(caller.uid ?? '', uid).length === 0) throw projectNotFound()
      return found
    },
    create(entity) {
      const { metadata, spec } = entity
      requireUnchanged(entity)
      checkUsers(entity)
      const now = clock.now()
      const uid = uuidAt(now)
      transaction(() => {
        if (store.hasName(metadata.name))
          throw new AppError(platformErrors.ProjectExists, `there is a project named ${metadata.name}`, {
            details: { field: 'metadata.name' },
          })
        requireBelowMost('project', store.all().length)
        store.put({
          uid,
          name: metadata.name,
          createdAt: now,
          modifiedAt: now,
          users: spec?.users ?? [],
          labels: metadata.labels ?? {},
          annotations: metadata.annotations ?? {},
        })
      })
      return uid
    },
    update(uid, entity) {
      checkUsers(entity)
      transaction(() => {
        const before = find(uid)
        requireUnchanged(entity, toProject(before))
        const { metadata, spec } = entity
        store.put({
          ...before,
          labels: metadata.labels ?? before.labels,
          annotations: changedAnnotations(before.annotations, metadata.annotations),
          users: spec?.users ?? before.users,
          modifiedAt: clock.now(),
        })
      })
      changes.rightsChanged()
    },
    remove(uid) {
      transaction(() => {
        const { name } = find(uid)
        const uses = usesOf(uid)
        if (uses.length > 0)
          throw new AppError(
            platformErrors.ProjectInUse,
            `${name} still has ${uses.join(', ')}; delete them first`,
          )
        store.remove(uid)
      })
      changes.rightsChanged()
    },
  }
}

/** A project in the API. */
export const toProject = (project: ProjectRecord): Project => ({
  metadata: {
    annotations: project.annotations,
    creationTimestamp: formatTime(project.createdAt),
    labels: project.labels,
    lastModifiedTimestamp: formatTime(project.modifiedAt),
    name: project.name,
    uid: project.uid,
  },
  spec: { users: project.users.map(({ userId, roles }) => ({ userId, roles: [...roles] })) },
  status: { isDisabled: false },
})

/** Queryable fields of the list of projects. */
export const projectList: ListResource<MemoryField<ProjectRecord>> = {
  name: 'projects',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': { type: 'text', read: ({ uid }) => uid },
    'metadata.name': { type: 'text', read: ({ name }) => name },
    'metadata.creationTimestamp': { type: 'time', read: ({ createdAt }) => createdAt },
    'metadata.lastModifiedTimestamp': { type: 'time', read: ({ modifiedAt }) => modifiedAt },
  },
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: Project,
}
