import { createSeal, type Seal } from '../../secrets/seal.ts'
import type { Secrets } from '../../secrets/secrets.ts'

/** A column of texts that are sealed, each row with a uid. */
export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** Of the key; it never changes. */
  readonly purpose: string
}

/** Every sealed column of the database: one that is not named here could not be read after a change of the secret. */
export const sealedColumns = {
  profileVariables: {
    table: 'cluster_profile',
    column: 'variables',
    purpose: 'sensitive values of cluster profiles',
  },
  clusterValues: { table: 'cluster', column: 'given', purpose: 'sensitive values of clusters' },
  clusterDescriptions: { table: 'cluster', column: 'head', purpose: 'descriptions of clusters' },
  cloudSecrets: { table: 'cloud_account', column: 'secret_key', purpose: 'secrets of cloud accounts' },
  kubeconfigs: { table: 'cluster', column: 'kubeconfig', purpose: 'kubeconfigs of clusters' },
} as const satisfies Readonly<Record<string, SealedColumn>>

/** What seals the texts of a column. */
export const sealOf = (secrets: Secrets, { purpose }: SealedColumn): Seal =>
  createSeal(secrets.derive(purpose))
