import { guessTables } from '../credentials/guess-store.ts'
import type { Migrations } from '../store/structure.ts'
import { apiKeyTables } from './keys/keys.ts'
import { auditTables } from './audits/audits.ts'
import { cloudTables } from './clouds/clouds.ts'
import { clusterTables } from './clusters/store.ts'
import { edgeHostDescribed, edgeHostKeys, edgeHostTables } from './hosts/store.ts'
import { eventShares, eventTables } from './events/events.ts'
import { packTables } from './packs/store.ts'
import { profileTables } from './profiles/store.ts'
import { projectTables } from './projects/store.ts'
import { tenantTables } from './system/tenant.ts'
import { userTables } from './users/store.ts'

/**
 * The schema of the platform: what it was when its versions of before were folded into one, and one entry for each later change, applied in order and never edited once released. Times are milliseconds since 1970, UTC;
 * an empty project uid is the tenant itself.
 */
export const migrations: Migrations = {
  first: 4,
  install: 'a package that was built at c80bc925 or later',
  steps: [
    [
      tenantTables,
      auditTables,
      guessTables,
      userTables,
      projectTables,
      apiKeyTables,
      edgeHostTables,
      eventTables,
      packTables,
      profileTables,
      clusterTables,
      cloudTables,
    ].join('\n'),
    eventShares,
    edgeHostKeys,
    edgeHostDescribed,
  ],
}
