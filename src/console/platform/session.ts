import type { UserInfo, UserToken } from '../../platform/users/schemas.ts'
import type { Static } from 'typebox'
import { signal } from '@preact/signals'
import type { Project } from '../../platform/projects/schemas.ts'
import { get } from '../shared/request.ts'
import { highestRole, type SessionProtocol } from '../shared/session.ts'
import { placeProject } from '../shared/shell.tsx'

/** Who is signed in; undefined before. */
export const me = signal<UserInfo | undefined>(undefined)

/** The projects that the user sees, by name. */
export const projects = signal<readonly Project[]>([])

/** More than a person finds in a list. */
const mostProjects = 1_000

interface ProjectPage {
  readonly items: readonly Project[]
  readonly listmeta: { readonly continue: string }
}

/** Reads the projects of the user. @throws RequestError */
export async function readProjects(): Promise<void> {
  const found: Project[] = []
  let token = ''
  do {
    const page: ProjectPage = await get<ProjectPage>(
      `/v1/projects?orderBy=metadata.name=1&fields=metadata.name,metadata.uid,spec.users&continue=${encodeURIComponent(token)}`,
    )
    found.push(...page.items)
    token = page.listmeta.continue
  } while (token !== '' && found.length < mostProjects)
  projects.value = found
}

/** The highest role of the user in a scope; undefined without one. @param project undefined for the tenant */
export function roleIn(project: string | undefined) {
  const { roles = [], userUid } = me.value ?? {}
  const { spec } = projects.value.find(({ metadata }) => metadata.uid === project) ?? {}
  return highestRole([...roles, ...(spec?.users.find(({ userId }) => userId === userUid)?.roles ?? [])])
}

/** Sessions of the platform: one token, valid for 15 minutes, which is exchanged for another one while it is. */
export const platformSession: SessionProtocol = {
  logIn: (emailId, password) => ({
    path: '/v1/auth/authenticate',
    method: 'POST',
    body: { emailId, password },
    // Hashes of passwords wait for each other.
    timeoutMs: 60_000,
  }),
  renew: (token) => ({ path: `/v1/auth/refresh/${encodeURIComponent(token)}` }),
  logOut: ({ Authorization }) => ({
    path: '/v1/users/auth/tokens/revoke',
    method: 'POST',
    body: { tokens: [Authorization] },
  }),
  pairOf(reply) {
    const { Authorization } = reply as Static<typeof UserToken>
    return { Authorization, RefreshToken: Authorization }
  },
  async readUser() {
    const info = await get<UserInfo>('/v1/users/info')
    me.value = info
    await readProjects()
    return { userName: info.emailId, role: roleIn(placeProject.value) ?? 'viewer' }
  },
  wrongCode: 'SignInRefused',
}
