/** Values of another source, used where neither the kernel's files nor NVIDIA's driver have one. */
export interface Supplement {
  /** The maker of a disk, by the kernel's name for it and its size in whole GiB. */
  diskVendor(name: string, size: number): string | undefined
  /** A display controller, by its PCI address such as `0000:11:00.0`. */
  display(address: string): DisplaySupplement | undefined
}

export interface DisplaySupplement {
  readonly vendor?: string
  readonly model?: string
  readonly memoryMiB?: number
}
