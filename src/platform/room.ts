// The platform keeps packs and cluster profiles (ADR 30): `platform/examinations.ts` gives what users send to the program `examine.cjs`, which also
// writes the replies about it; `platform/kept-folders.ts` keeps a folder for each pack (`packs/packs.ts`) and profile (`profiles/profiles.ts`),
// which never changes and is named by a row of the database; `platform/packs/packs.ts` builds both. Each row of a project is written in a
// transaction that finds the project (`RequireProject`) or another row of it, without which the project is not deleted. `Packs.folderOf` is what
// `definition build` reads. `definition/read/choose-version.ts` says which pack a tag means, there and here.
//
// Clusters of the platform (ADR 31) are in `platform/clusters`. `requests.ts` reads a request, `examine-request.ts` has it checked and built
// by `examine.cjs` (`definition/examination/examine-cluster.ts`), and `clusters.ts` writes it with the next number. `downloads.ts` keeps the header
// of each heartbeat's reply in memory. `downloads.ts` gives the bytes around the definition and its file, which `api/send-file.ts` sends, as it
// sends the blobs of the registry. `reports.ts` keeps the reports of hosts. `clouds/machines.ts` gives the machines of a pool: for hosts itself, `clouds/openstack` for a cloud (ADR 32): `keystone.ts` logs in and keeps tokens, `openstack.ts` reads lists page by page, and makes machines of them; `http.ts` bounds the replies of a cloud. `platform/clouds/kept-pools.ts` keeps the
// last read of each pool, for all callers, and its memory use. `platform/clouds` has the accounts and the cloud configurations.

import type { Audit } from '../audit/audit.ts'
import type { HashCost } from '../credentials/password-hash.ts'
import type { Ground, Room } from '../root/room.ts'
import { createAudits } from './audits/audits.ts'
import { auditRoutes } from './audits/routes.ts'
import { createCloudParts } from './clouds/clouds.ts'
import { createEdgeMachines } from './clouds/machines.ts'
import { cloudConfigRoutes, cloudRoutes } from './clouds/routes.ts'
import { createDesiredIndex } from './clusters/downloads.ts'
import { createClusterParts, type ClusterParts } from './clusters/clusters.ts'
import { clusterReportRoutes } from './clusters/routes-reports.ts'
import { clusterRoutes } from './clusters/routes.ts'
import { createClusterStore } from './clusters/store.ts'
import type { CloudsSettings, PlatformSettings } from './config.ts'
import { createEvents } from './events/events.ts'
import { eventRoutes } from './events/routes.ts'
import { createHostParts, type HostParts } from './hosts/hosts.ts'
import { hostReportRoutes } from './hosts/routes-reports.ts'
import { edgeHostRoutes } from './hosts/routes.ts'
import { keptHosts } from './hosts/heartbeats.ts'
import { createKeys } from './keys/keys.ts'
import { apiKeyRoutes } from './keys/routes.ts'
import { createPackParts, type PackParts } from './packs/packs.ts'
import { packRoutes } from './packs/routes.ts'
import { profileRoutes } from './profiles/routes.ts'
import { createProjects, createRequireProject } from './projects/projects.ts'
import { projectRoutes } from './projects/routes.ts'
import { createProjectStore } from './projects/store.ts'
import type { CallerChanges } from './requests/changes.ts'
import { createAuthorize, createIdentify } from './requests/identify.ts'
import { registrationTokenRoutes } from './tokens/routes.ts'
import { authRoutes } from './users/routes-sign-in.ts'
import { userRoutes } from './users/routes.ts'
import { createUserParts, type UserParts } from './users/users.ts'

interface PlatformRoomOptions {
  readonly tenantUid: string
  readonly audit: Pick<Audit, 'access' | 'count'>
  readonly changes: CallerChanges
  /** Whether the disk has space for data that can wait. */
  readonly hasSpace: () => boolean
  /** @throws AppError where the disk has no space for data of a host */
  readonly requireSpace: () => void
  /** Path of `examine.cjs`. */
  readonly examineProgram: string
  readonly passwordCost?: HashCost | undefined
  /** The address of this platform, for links: `https://platform.example:5443`. */
  readonly origin: () => string
}

/** The platform: users, projects, hosts, packs, profiles, clusters, clouds, and who may do what in which scope. */
export interface PlatformRoom extends Room {
  readonly people: UserParts
  readonly hosts: HostParts
  readonly packs: PackParts
  readonly clusters: ClusterParts
  readonly identify: ReturnType<typeof createIdentify>
  readonly authorize: ReturnType<typeof createAuthorize>
  readonly keptConnections: ReturnType<typeof keptHosts>
}

/** Builds the parts of the platform, each noun after those that it needs. */
export async function createPlatformRoom(
  ground: Ground<{ readonly platform: PlatformSettings; readonly clouds: CloudsSettings }>,
  own: PlatformRoomOptions,
): Promise<PlatformRoom> {
  const { config, database, listTokens, clock } = ground
  const { tenantUid, audit, changes, hasSpace, requireSpace, examineProgram, passwordCost, origin } = own
  const people = await createUserParts(ground, { origin, passwordCost, changes })
  const projectStore = createProjectStore(database)
  const requireProject = createRequireProject(projectStore)
  const clusterStore = createClusterStore(database)
  const index = createDesiredIndex(clusterStore)
  const hosts = await createHostParts(ground, {
    tenantUid,
    findProject: projectStore.find,
    clusterOn: index.clusterOn,
    changes,
    requireSpace,
  })
  const packs = await createPackParts(ground, {
    requireProject,
    program: examineProgram,
    usesOf: clusterStore.using,
    madeOf: clusterStore.madeOf,
  })
  const clusters = await createClusterParts(ground, {
    store: clusterStore,
    index,
    tenantUid,
    hosts,
    packs,
    hasSpace,
  })
  const clouds = await createCloudParts(ground, { requireProject })
  const events = createEvents(ground)
  const keys = createKeys(ground, { findUser: people.find, changes })
  const audits = createAudits(ground, {
    count: audit.count,
    tenantUid,
    findUser: people.find,
    findProject: projectStore.find,
  })
  const projects = createProjects(ground, {
    store: projectStore,
    isUser: people.isUser,
    roleOf: people.roleOf,
    usesOf: (uid) => [
      ...clusters.clusters.usesOfProject(uid),
      ...hosts.usesOf(uid),
      ...packs.usesOf(uid),
      ...clouds.usesOf(uid),
    ],
    changes,
  })

  return {
    people,
    hosts,
    packs,
    clusters,
    identify: createIdentify({ ...people, keys, authenticateHost: hosts.authenticate }),
    authorize: createAuthorize({ ...people, projects: projectStore }),
    keptConnections: keptHosts(config.platform.keptConnections),
    jobs: [...people.jobs, ...hosts.jobs, events.job],
    async routes(app) {
      await authRoutes(app, people)
      await apiKeyRoutes(app, { keys, listTokens })
      await registrationTokenRoutes(app, { tokens: hosts.tokens, listTokens })
      await edgeHostRoutes(app, { ...clusters, hosts, listTokens })
      await hostReportRoutes(app, { ...clusters, hosts })
      await eventRoutes(app, { events, findHost: hosts.find, listTokens })
      await packRoutes(app, { packs: packs.packs, listTokens })
      await profileRoutes(app, { ...packs, listTokens })
      await cloudConfigRoutes(app, {
        clusters: clusters.clusters,
        edgeMachines: createEdgeMachines(hosts),
        configs: clouds.configs,
        listTokens,
      })
      await cloudRoutes(app, { accounts: clouds.accounts, listTokens })
      await clusterRoutes(app, { clusters: clusters.clusters, listTokens })
      await clusterReportRoutes(app, clusters)
      await auditRoutes(app, { audits, access: audit.access, listTokens, now: () => clock.now() })
      await projectRoutes(app, { projects, listTokens, emailOf: (uid) => people.find(uid)?.email })
      await userRoutes(app, { ...people, tenantUid, listTokens })
    },
    async stop() {
      hosts.stop()
      people.stop()
      clouds.stop()
      await packs.stop()
    },
  }
}
